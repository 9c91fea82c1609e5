package terraform

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Of what runs at once the oldest is shown; a replaced resource counts once, when
// both of its operations are done.
func TestProgressOfAnApply(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	shown := func(what, doing string, since, done int) jobspec.Progress {
		return jobspec.Progress{What: what, Doing: doing, Since: at(since), Done: done, Total: 3}
	}
	hook := func(kind, addr, action string) string {
		return `{"type":"` + kind + `","hook":{"resource":{"addr":"` + addr + `"},"action":"` + action + `"}}`
	}
	planned := func(addr, action string) string {
		return `{"type":"planned_change","change":{"resource":{"addr":"` + addr + `"},"action":"` + action + `"}}`
	}
	none := jobspec.Progress{}
	var u underway
	for second, look := range []struct {
		line string
		want jobspec.Progress
	}{
		{planned("a.db", "create"), none},
		{planned("a.web", "replace"), none},
		{planned("a.moved", "noop"), none},
		{planned("a.gone", "delete"), none},
		{hook("apply_start", "a.db", "create"), shown("a.db", "creating", 4, 0)},
		{hook("apply_start", "a.web", "delete"), shown("a.db", "creating", 4, 0)},
		{hook("apply_progress", "a.db", "create"), shown("a.db", "creating", 4, 0)},
		{hook("apply_complete", "a.web", "delete"), shown("a.db", "creating", 4, 0)},
		{hook("apply_start", "a.web", "create"), shown("a.db", "creating", 4, 0)},
		{hook("apply_complete", "a.db", "create"), shown("a.web", "creating", 8, 1)},
		{hook("apply_complete", "a.web", "create"), none},
		{hook("apply_start", "a.gone", "delete"), shown("a.gone", "deleting", 11, 2)},
		{hook("apply_errored", "a.gone", "delete"), none},
		{`{"type":"change_summary"}`, none},
	} {
		var ev event
		if err := json.Unmarshal([]byte(look.line), &ev); err != nil {
			t.Fatal(err)
		}
		u.take(ev, at(second))
		if diff := cmp.Diff(look.want, u.progress()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", look.line, diff)
		}
	}
}
