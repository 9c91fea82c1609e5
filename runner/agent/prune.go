package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/order"
)

// planLifetime is how long a plan may wait for its approval. An older one has
// to be made again. The plan of what is live stays.
const planLifetime = 90 * 24 * time.Hour

// prune forgets old plans. Artifacts stay: with the control plane gone for ever
// the install must still be able to take itself down.
func (a *agent) prune(ctx context.Context) {
	log := a.cfg.Log
	records, err := filepath.Glob(filepath.Join(a.dir.Plans(), "*.json"))
	if err != nil {
		return
	}
	live := map[string]bool{} // what looks for drift compare with
	settings, _ := a.current()
	for _, s := range settings.Surveys {
		if s.Drift != nil {
			live[s.Drift.Change] = true
		}
	}
	var keep []digest.Digest
	pruned := 0
	for _, path := range records {
		var r order.Record
		if _, err := datadir.ReadJSON(path, &r); err != nil {
			log.WarnContext(ctx, "record of a plan is damaged", "err", err)
			continue
		}
		if a.cfg.Now().Sub(r.PlannedAt) < planLifetime || live[r.ChangeID] {
			keep = append(keep, digest.Digest(r.Blob), digest.Digest(r.Wanted))
			continue
		}
		summary := a.dir.PlanSummary(strings.TrimSuffix(filepath.Base(path), ".json"))
		if err := os.Remove(summary); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.WarnContext(ctx, "summary of an old plan stays", "err", err)
		}
		if err := os.Remove(path); err != nil {
			log.WarnContext(ctx, "old plan stays", "err", err)
		}
		pruned++
	}
	if pruned == 0 {
		return
	}
	artifacts, err := a.layout.Artifacts()
	if err != nil {
		log.WarnContext(ctx, "own registry cannot be listed", "err", err)
		return
	}
	for _, artifact := range artifacts {
		found, err := oci.Inspect(ctx, a.layout, artifact.Digest)
		if err != nil || found.Kind != oci.KindPlan {
			keep = append(keep, artifact.Digest)
		}
	}
	freed, err := a.layout.GC(ctx, oci.GCOptions{Keep: keep})
	a.trees.Prune()
	log.InfoContext(ctx, "old plans were forgotten", "plans", pruned, "freed_bytes", freed, "err", err)
}
