package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestAutomaticRetries has two components that may each be retried once: one
// fails for a variable, which is told at once, the other one in a script of the
// vendor, which is tried again.
func TestAutomaticRetries(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	edit(t, filepath.Join(in.app, "src", "work", "main.tf"), "      exec 9>>", "      [ \"${var.value}\" != broken ] || { echo no such bucket >&2; exit 3; }\n      exec 9>>")
	one, two := filepath.Join(in.app, "components", "one.toml"), filepath.Join(in.app, "components", "two.toml")
	for _, file := range []string{one, two} {
		edit(t, file, `type              =`, "max_auto_retries  = 1\ntype              =")
	}
	edit(t, one, `lines  = "20"`, `lines  = "twenty"`)
	edit(t, two, `value  = "v1"`, `value  = "broken"`)
	in.sync("probe", in.app)
	for component, want := range map[string]struct {
		tries         int
		error, remedy string
	}{
		"one": {1, "vars.lines: a number is needed", "main.tf:"},
		"two": {2, "no such bucket", ""},
	} {
		w := in.finished(in.deploy(true, component).ID, 2*time.Minute)
		var changes ctlapi.ChangePage
		in.get("/changes?workflow="+w.ID, &changes)
		tries := slices.DeleteFunc(changes.Items, func(c ctlapi.ChangeSummary) bool { return c.Resource == nil || c.Resource.Name != component })
		failed := step(w, "component/"+component)
		told := in.explain(w)
		if w.State != "failed" || len(tries) != want.tries || !strings.Contains(told, want.error) || failed.Remedy == nil || !strings.Contains(*failed.Remedy, want.remedy) {
			t.Errorf("%s: %s after %d tries, want failed after %d: %s", component, w.State, len(tries), want.tries, told)
		}
		t.Logf("%s: %d tries: %s", component, len(tries), told)
	}
}
