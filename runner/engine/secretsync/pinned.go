package secretsync

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// intent is the canonical plan: what a sync wants and what is done for it, without values.
type intent struct {
	Destroy      bool          `json:"destroy"`
	FieldManager string        `json:"field_manager"`
	Targets      []target      `json:"targets"`
	Changes      []kube.Change `json:"changes"`
}

// pinned is pinned/secrets.json: all that an apply needs, with the values.
type pinned struct {
	Format  int            `json:"format"`
	Destroy bool           `json:"destroy"`
	Targets []pinnedTarget `json:"targets"`
	Changes []kube.Pinned  `json:"changes"`
}

type pinnedTarget struct {
	target
	Data map[string][]byte `json:"data"`
}

const (
	pinnedFormat = 1
	pinnedFile   = "secrets.json"
)

// write writes everything that a plan leaves for the agent.
func (s *syncing) write(ctx context.Context, changes []kube.Change) error {
	p := pinned{Format: pinnedFormat, Destroy: s.destroy, Targets: []pinnedTarget{}, Changes: kube.Pin(changes)}
	for _, t := range s.targets {
		p.Targets = append(p.Targets, pinnedTarget{t, t.data})
	}
	targets := append([]target{}, s.targets...)
	j := s.job
	// What is shown of a Secret stands for it: versions and digests, no values.
	judged, err := kube.Documents(j, changes, nil)
	var known footprint.Known
	if !kube.NoChange(changes) {
		needs := kube.NeedsOf(changes, func(kube.Ref) kube.Verbs { return kube.Updates })
		known.Uses = s.cluster.Uses(ctx, append(needs, kube.RecordsIn(s.inventory.Namespace, "ConfigMap")...))
	}
	return errors.Join(
		err,
		documents.Leave(j, judged),
		os.MkdirAll(j.Out("pinned"), 0o700),
		documents.LeaveKnown(j, known),
		job.WriteJSON(j.Out("pinned", pinnedFile), p),
		job.WriteJSON(j.Out("plan.canonical.json"), intent{Destroy: s.destroy, FieldManager: kube.FieldManager, Targets: targets, Changes: changes}),
		job.WriteJSON(j.Out("plan.summary.json"), kube.Summarise(changes, j.Spec.DigestKey)),
		job.WriteJSON(j.Out("inputs.json"), map[string]any{"targets": targets}),
	)
}

func readPinned(j *job.Job) (p pinned, targets []target, err error) {
	if err := job.ReadJSON(j.In("pinned", pinnedFile), &p); err != nil {
		return p, nil, job.Refusef("plan again", "what the plan pinned cannot be read") // the cause could quote a value
	}
	if p.Format != pinnedFormat {
		return p, nil, job.Refusef("plan again", "what the plan pinned has format %d, this engine knows %d", p.Format, pinnedFormat)
	}
	for _, t := range p.Targets {
		t.data = t.Data
		targets = append(targets, t.target)
	}
	return p, targets, nil
}

// previous are the changes of the plan that this one follows, if its outcome is uncertain
// and it is still there.
func previous(j *job.Job) []kube.Change {
	var p pinned
	err := job.ReadJSON(j.In("previous", pinnedFile), &p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		j.Logf("what the change before pinned cannot be read, so this plan starts from what is there")
		return nil
	case p.Format != pinnedFormat || p.Destroy != j.Spec.Destroy:
		return nil
	}
	return kube.Unpin(p.Changes)
}
