package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestHealthGate deploys with a hold: one that stays healthy is done once a look at its end has
// seen that, one that breaks is not, keeps the install on its release, and goes back.
func TestHealthGate(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := &install{system: s, name: "acme", app: folder(t, filepath.Join("..", "..", "examples", "hello"))}
	edit(t, filepath.Join(in.app, "actions", "files_intact.toml"), "unhealthy_after = 3\nhealthy_after   = 2", "unhealthy_after = 1\nhealthy_after   = 1")
	asked := make(chan string, 100) // by the probe of a component
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Method + " " + r.URL.Path + " " + r.UserAgent():
		default:
		}
	}))
	t.Cleanup(server.Close)
	edit(t, filepath.Join(in.app, "components", "card.toml"), "[berth]", fmt.Sprintf("[[health.probes]]\ntype = \"http\"\nname = \"answers\"\ntarget = \"%s/{{ .nuon.install.name }}\"\n\n[berth]", server.URL))
	s.sync("hello", in.app)
	s.must("installs", "create", "acme", "--app", "hello", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	s.must("installs", "set", "acme", "approval=approve-all")
	release := func() int {
		t.Helper()
		var got ctlapi.Install
		s.get("/installs/acme", &got)
		return got.Release.Number
	}
	// The check runs at each full minute, which may be right after the gate has opened: the
	// time that health has to hold is the time that the test has behind the gate.
	began := func(number, hold int) (w ctlapi.Workflow) {
		t.Helper()
		edit(t, filepath.Join(in.app, "components", "card.toml"), "Welcome", fmt.Sprintf("%d times welcome", number))
		edit(t, filepath.Join(in.app, "components", "card.toml"), "times welcome", "times Welcome")
		s.sync("hello", in.app)
		s.post("/installs/acme/workflows", map[string]any{"kind": "deploy", "hold_seconds": hold}, &w)
		s.eventually(time.Minute, "the gate is open", func() error {
			s.get("/workflows/"+w.ID, &w)
			if w.Wait == nil || w.Wait.Reason != "health" {
				return fmt.Errorf("it is %s, waiting for %+v", w.State, w.Wait)
			}
			return nil
		})
		return w
	}

	w := began(2, 10)
	if got := release(); got != 1 {
		t.Errorf("behind the gate the install has release %d", got)
	}
	if out := s.must("why", "acme"); !strings.Contains(out, "not yet: files_intact") {
		t.Errorf("berth why says\n%s", out)
	}
	if w = in.finished(w.ID, 3*time.Minute); w.State != "succeeded" || release() != 2 {
		t.Fatalf("the good deploy is %s, release %d: %s", w.State, release(), in.explain(w))
	}
	if len(asked) == 0 {
		t.Error("the probe of the component asked nobody")
	} else if got := <-asked; got != "GET /acme berth-probe" {
		t.Errorf("the probe asked %q", got)
	}
	if out := s.must("installs", "health", "acme"); !strings.Contains(strings.Join(strings.Fields(out), " "), "probe.card.answers healthy") {
		t.Errorf("health is\n%s", out)
	}

	w = began(3, 60)
	files, err := filepath.Glob(filepath.Join(s.dir, "runners", "*", "install", "hello", "card.txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	w = in.finished(w.ID, 3*time.Minute)
	if says := in.explain(w); w.State != "failed" || release() != 2 || !strings.Contains(says, "files_intact became unhealthy after the deploy") {
		t.Fatalf("the bad deploy is %s, release %d: %s", w.State, release(), says)
	}
	if out := s.must("status", "acme"); !strings.Contains(out, "berth rollback acme") {
		t.Errorf("no rollback is offered:\n%s", out)
	}
	s.must("rollback", "acme", "--watch", "--hold", "app")
	if out := s.must("installs", "health", "acme"); release() != 2 || !strings.HasPrefix(out, "healthy") {
		t.Errorf("after the rollback it has release %d, and health is\n%s", release(), out)
	}
}
