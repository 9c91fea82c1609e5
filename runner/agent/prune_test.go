package agent_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/order"
)

// Old plans are forgotten, with their sealed bytes; newer ones and artifacts
// stay.
func TestOldPlansAreForgotten(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	if err := r.dir.Make(0); err != nil {
		t.Fatal(err)
	}
	layout, err := oci.Open(r.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	module, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	plan := func(age time.Duration) (path string, blob digest.Digest) {
		change := id.New(id.Change)
		blob, err := layout.PutBlob(t.Context(), oci.KindPlan.ArtifactType(), change, []byte("sealed "+change))
		if err != nil {
			t.Fatal(err)
		}
		record := order.Record{ChangeID: change, Blob: blob.String(), PlannedAt: time.Now().Add(-age)}
		if err := datadir.WriteJSON(r.dir.Plan(change), record); err != nil {
			t.Fatal(err)
		}
		return r.dir.Plan(change), blob
	}
	oldPath, oldBlob := plan(100 * 24 * time.Hour)
	newPath, newBlob := plan(time.Hour)
	r.start()
	r.plane.until(t, "a session", func() bool { return len(r.plane.sessions) > 0 })

	type left struct{ OldRecord, OldBlob, NewRecord, NewBlob, Module bool }
	there := func(path string) bool {
		_, err := os.Stat(path)
		return !errors.Is(err, os.ErrNotExist)
	}
	got := left{there(oldPath), layout.Has(oldBlob), there(newPath), layout.Has(newBlob), layout.Has(module.Digest)}
	if diff := cmp.Diff(left{NewRecord: true, NewBlob: true, Module: true}, got); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
