package e2e_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// TestMainJob is the way of an app from its folder to a healthy install, and
// what follows: a change that is denied, approved, and everything removed.
func TestMainJob(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")

	t.Run("independent components execute at the same time, a dependent waits", func(t *testing.T) {
		effects := in.effects()
		one, two := slices.Index(effects, "begin one v1"), slices.Index(effects, "begin two v1")
		endOne, endTwo := slices.Index(effects, "end one v1"), slices.Index(effects, "end two v1")
		three := slices.Index(effects, "begin three after v1")
		if one < 0 || two < 0 || max(one, two) > min(endOne, endTwo) {
			t.Errorf("one and two did not overlap: %v", effects)
		}
		if three < max(endOne, 0) {
			t.Errorf("three began before one had ended: %v", effects)
		}
	})

	t.Run("the dependent got the real output, and the secret", func(t *testing.T) {
		var state map[string]any
		s.get("/installs/acme/state", &state)
		three := in.output("three")
		// The secret that three was given is one's secret output, which holds the
		// canary: only who has it can make this hash.
		if want := sha256Hex("derived-" + sha256Hex(canary) + "-" + canary); three["secret_sha256"] != want {
			t.Errorf("three was given another secret: hash %v, want %s", three["secret_sha256"], want)
		}
		if three["secret"] != "(sealed)" {
			t.Errorf("the API shows the sensitive output as %v", three["secret"])
		}
	})

	t.Run("plans show sensitive values by digests, which differ from place to place", func(t *testing.T) {
		digests := map[string]string{}
		for _, c := range in.changes("applied") {
			var tree ctlapi.PlanTree
			s.get("/changes/"+c.ID+"/plan/tree", &tree)
			for _, o := range tree.Outputs {
				if o.Name != "secret" {
					continue
				}
				digest, hidden := jobspec.IsSensitive(o.After)
				if !o.Hidden || !hidden || digest == "" || digests[digest] != "" {
					t.Errorf("the plan of %s shows its secret as %q; another is the same: %q", c.Resource.Name, o.After, digests[digest])
				}
				digests[digest] = c.Resource.Name
			}
		}
		if len(digests) != 3 {
			t.Errorf("secrets are shown of %v", digests)
		}
	})

	t.Run("one var changed makes a release without a build and a change that shows just that", func(t *testing.T) {
		before := in.effects()
		builds := in.builds()
		in.change("v2")
		if got := in.builds(); got != builds {
			t.Errorf("%d builds after the sync, %d before", got, builds)
		}
		w := in.deploy(false, "one")
		c := in.proposed(w.ID, "component/one")
		var changed []string
		for _, o := range c.Plan.Objects {
			for _, f := range o.Fields {
				changed = append(changed, o.Address+" "+f.Path+" "+f.Before+" → "+f.After)
			}
		}
		for _, line := range changed {
			if !strings.Contains(line, "v1") && !strings.Contains(line, "known after apply") {
				t.Errorf("the change shows more than the var: %s", line)
			}
		}
		if !slices.ContainsFunc(changed, func(l string) bool { return strings.Contains(l, "v1") && strings.Contains(l, "v2") }) {
			t.Errorf("the change does not show v1 → v2: %v", changed)
		}
		in.decide(c, "deny")
		if got := in.finished(w.ID, time.Minute); got.State != "failed" {
			t.Errorf("workflow is %s after the denial", got.State)
		}
		if !slices.Equal(before, in.effects()) {
			t.Errorf("deny left effects: %v", in.effects()[len(before):])
		}
		w = in.deploy(false, "one")
		c = in.proposed(w.ID, "component/one")
		in.decide(c, "approve")
		if got := in.finished(w.ID, time.Minute); got.State != "succeeded" {
			t.Fatalf("after the approval: %s", in.explain(got))
		}
		if !slices.Contains(in.effects(), "end one v2") {
			t.Errorf("approve did not apply: %v", in.effects())
		}
	})

	t.Run("an empty plan passes by itself", func(t *testing.T) {
		w := in.deploy(false, "one")
		got := in.finished(w.ID, time.Minute)
		if c := step(got, "component/one").Change; got.State != "succeeded" || c == nil || c.State != "no_change" {
			t.Errorf("deploying again: %s", in.explain(got))
		}
	})

	t.Run("every line of the logs is there", func(t *testing.T) {
		for _, c := range in.changes("applied") {
			for _, stream := range streams(c) {
				if _, complete := in.log(stream); !complete {
					t.Errorf("stream %s of change %s is not complete", stream, c.ID)
				}
			}
		}
	})

	t.Run("deprovision removes everything that was made", func(t *testing.T) {
		var w ctlapi.Workflow
		in.post("/installs/acme/workflows", map[string]any{"kind": "deprovision", "approve_all": true, "confirm": in.name}, &w)
		if got := in.finished(w.ID, 2*time.Minute); got.State != "succeeded" {
			t.Fatalf("deprovision: %s", in.explain(got))
		}
		for _, want := range []string{"gone one v2", "gone two v1"} {
			if !slices.Contains(in.effects(), want) {
				t.Errorf("no effect %q: %v", want, in.effects())
			}
		}
		var resources ctlapi.ResourcePage
		s.get("/installs/acme/resources", &resources)
		for _, r := range resources.Items {
			if r.Kind != "stack" && r.State != "absent" {
				t.Errorf("%s is %s after the deprovision", r.Name, r.State)
			}
		}
	})
}

// TestTheCommandLineAlone goes the same way with nothing but `berth`: every step
// of a vendor's day, its output and its exit codes.
func TestTheCommandLineAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	app := folder(t, filepath.Join("..", "..", "examples", "hello"))
	out := s.must("sync", app, "--wait")
	if !strings.Contains(out, "release 1") {
		t.Errorf("sync says:\n%s", out)
	}
	if out := s.must("sync", app, "--wait"); !strings.Contains(out, "release 1") {
		t.Errorf("the second sync says:\n%s", out)
	}
	s.must("installs", "create", "acme", "--app", "hello", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	if out := s.must("status"); !strings.Contains(out, "healthy") {
		t.Errorf("status says:\n%s", out)
	}
	if _, code := s.berth("deploy", "acme", "--plan"); code != 0 {
		t.Errorf("a plan without changes exits %d, want 0", code)
	}
	edit(t, filepath.Join(app, "inputs.toml"), `"Ahoy"`, `"Hello"`)
	s.must("sync", app, "--wait")
	if _, code := s.berth("deploy", "acme", "--watch"); code != 3 {
		t.Errorf("a deploy that waits for a decision exits %d, want 3", code)
	}
	out = s.must("changes", "list", "--state", "proposed", "-o", "name")
	change := strings.TrimSpace(strings.Split(out, "\n")[0])
	s.must("approve", change, "--auto-approve")
	s.eventually(time.Minute, "the greeting changed", func() error { return greets(s, "Hello") })
	if out := s.must("logs", "acme/greeting"); !strings.Contains(out, "sha256") {
		t.Errorf("logs do not end with their total:\n%s", tail(out, 5))
	}
	contentsFromElsewhere(t, s, app)
	if _, code := s.berth("installs", "show", "nobody"); code != 1 {
		t.Errorf("an unknown install exits %d, want 1", code)
	}
	if _, code := s.berth("no-such-command"); code != 64 {
		t.Errorf("an unknown command exits %d, want 64", code)
	}
}

// contentsFromElsewhere gives an app a README at an address: it is fetched at
// sync, kept by its digest, and another text there is another config.
func contentsFromElsewhere(t *testing.T, s *system, app string) {
	t.Helper()
	var text atomic.Pointer[string]
	text.Store(new("# One\n"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, *text.Load()) }))
	defer server.Close()
	edit(t, filepath.Join(app, "metadata.toml"), `"./install.md"`, strconv.Quote(server.URL+"/README.md"))
	s.must("sync", app, "--wait")
	var config ctlapi.Config
	if err := json.Unmarshal([]byte(s.must("configs", "show", "hello@3", "-o", "json")), &config); err != nil {
		t.Fatal(err)
	}
	want := []ctlapi.FetchedFile{{
		File: "metadata.toml", Key: "readme", Address: server.URL + "/README.md", SizeBytes: 6,
		Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("# One\n"))),
	}}
	if diff := cmp.Diff(want, config.Fetched); diff != "" {
		t.Errorf("fetched (-want +got):\n%s", diff)
	}
	if out, code := s.berth("sync", app, "--plan"); code != 0 || !strings.Contains(out, "config 3 already has this content") {
		t.Errorf("the same text: exit code %d\n%s", code, out)
	}
	text.Store(new("# Two\n"))
	if out, code := s.berth("sync", app, "--plan"); code != 2 || !strings.Contains(out, "readme.contents") {
		t.Errorf("another text: exit code %d\n%s", code, out)
	}
	s.must("sync", app, "--wait")
	if out, code := s.berth("configs", "diff", "hello@3", "4"); code != 2 || !strings.Contains(out, "readme.contents") {
		t.Errorf("configs 3 and 4: exit code %d\n%s", code, out)
	}
}

// greets looks for a word in the file that examples/hello writes.
func greets(s *system, word string) error {
	files, _ := filepath.Glob(filepath.Join(s.dir, "runners", "*", "install", "hello", "greeting.txt"))
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), word) {
			return nil
		}
	}
	return os.ErrNotExist
}
