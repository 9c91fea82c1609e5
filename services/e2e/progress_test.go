package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestProgress watches a component that takes its time: who watches sees which
// resource Terraform is at and for how long, and so does who asks the API.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := start(t, "BERTH_LEASE_TTL=6s") // renewed every 2 s
	in := s.probe("acme")
	in.change("slow")
	release := in.hold()

	watched := in.watch("deploy", in.name, "one", "--auto-approve", "--watch")
	in.sinceEffect("begin one slow")
	const resource = "terraform_data.work"
	line := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  component/one: ` + regexp.QuoteMeta(resource) + `: creating, \d+ s \(0 of 1\)$`)
	in.eventually(30*time.Second, "the watcher sees the resource", func() error {
		if out := watched.String(); !line.MatchString(out) {
			return fmt.Errorf("so far:\n%s", out)
		}
		return nil
	})

	var page ctlapi.WorkflowPage
	in.get("/workflows?install="+in.name+"&limit=1", &page)
	var w ctlapi.Workflow
	if err := json.Unmarshal([]byte(s.must("workflows", "get", page.Items[0].ID, "-o", "json")), &w); err != nil {
		t.Fatal(err)
	}
	p := step(w, "component/one").Progress
	if p == nil || p.What != resource || p.Doing != "creating" || p.Done != 0 || p.Total != 1 {
		t.Fatalf("workflows get -o json shows progress %+v", p)
	}
	if began := p.StartedAt; began.After(p.ReportedAt) || time.Since(began) > time.Minute {
		t.Errorf("it began at %s and told so at %s", began, p.ReportedAt)
	}
	if shown := s.must("workflows", "get", w.ID); !regexp.MustCompile(`(?m)^ +` + regexp.QuoteMeta(resource) + `: creating, `).MatchString(shown) {
		t.Errorf("the tree does not show it:\n%s", shown)
	}

	release()
	if got := in.finished(w.ID, time.Minute); got.State != "succeeded" || step(got, "component/one").Progress != nil {
		t.Errorf("afterwards: %s", in.explain(got))
	}
}

// watched is what a command has written so far. Safe for concurrent use.
type watched struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

// watch starts a command that goes on by itself; the test waits for its end.
func (s *system) watch(args ...string) *watched {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cliTimeout)
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "berth"), args...)
	out := &watched{}
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("berth %v: %v\n%s", args, err, out)
		}
		cancel()
	})
	return out
}
