package scripts_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// told are the records of the machine before, in its chain.
type told struct {
	t       *testing.T
	records []chain.Record
}

func (c *told) add(r chain.Record) int64 {
	r.Seq, r.Time = int64(len(c.records))+1, noon.Add(time.Duration(len(c.records))*time.Minute)
	c.records = append(c.records, r)
	return r.Seq
}

// accept records an acceptance that came to the result; kept scripts are those that
// only the schedule keeps.
func (c *told) accept(release int, result jobspec.Outcome, list ...jobspec.Script) *chain.Scripts {
	c.t.Helper()
	about := chain.Scripts{ReleaseID: "rel_" + string(rune('0'+release)), Release: release}
	job := "job_" + string(rune('0'+release))
	intent := c.add(chain.Record{Kind: chain.Intent, Job: job, Scripts: &about})
	outcome := about
	if result == jobspec.OutcomeSucceeded {
		outcome.Version = intent
		for _, s := range list {
			outcome.List = append(outcome.List, chain.AcceptedScript{
				Digest: digest(c.t, s), Name: s.Action.Name, Cron: s.Cron, Role: s.Role, Inputs: s.Inputs,
				TimeoutSeconds: s.TimeoutSeconds, ReadOnly: s.Action.ReadOnly, HealthCheck: s.HealthCheck,
			})
		}
		outcome = outcome.Fitting()
	}
	c.add(chain.Record{Kind: chain.Outcome, Intent: intent, Job: job, Result: string(result), Scripts: &outcome})
	return c.records[len(c.records)-1].Scripts
}

func TestFromChain(t *testing.T) {
	t.Parallel()
	up, clean := script("up", "curl a\n"), script("clean", "rm x\n")
	for _, tc := range []struct {
		name    string
		tell    func(c *told)
		want    string // name, release and order of each
		nothing string
	}{
		{"a chain that accepted nothing", func(c *told) { c.add(chain.Record{Kind: chain.Event}) }, "", ""},
		{"an acceptance", func(c *told) { c.accept(1, jobspec.OutcomeSucceeded, up, clean) }, "clean rel_1 job_1, up rel_1 job_1", ""},
		{"a later one takes out what its release does not bring", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.accept(2, jobspec.OutcomeSucceeded, clean)
		}, "clean rel_2 job_2", ""},
		{"a script keeps where it came from", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.accept(2, jobspec.OutcomeSucceeded, up, clean)
		}, "clean rel_2 job_2, up rel_1 job_1", ""},
		{"forgotten", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.accept(2, jobspec.OutcomeSucceeded)
		}, "", ""},
		{"accepted again after it was forgotten", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.accept(2, jobspec.OutcomeSucceeded)
			c.accept(3, jobspec.OutcomeSucceeded, up)
		}, "up rel_3 job_3", ""},
		{"refused, failed and stale ones change nothing", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.accept(2, jobspec.OutcomeRefused)
			c.accept(3, jobspec.OutcomeFailed)
			c.accept(4, jobspec.OutcomeStale)
		}, "up rel_1 job_1", ""},
		{"an uncertain one leaves nothing", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.accept(2, jobspec.OutcomeUncertain)
		}, "", "leaves open"},
		{"one without outcome leaves nothing", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.add(chain.Record{Kind: chain.Intent, Job: "job_2", Scripts: &chain.Scripts{ReleaseID: "rel_2"}})
		}, "", "does not say how that ended"},
		{"only an intent accepts nothing", func(c *told) {
			c.add(chain.Record{Kind: chain.Intent, Job: "job_1", Scripts: &chain.Scripts{ReleaseID: "rel_1", Count: 1, List: []chain.AcceptedScript{{Digest: "sha256:x", Name: "x"}}}})
		}, "", "does not say how that ended"},
		{"the outcome of another kind of change accepts nothing", func(c *told) {
			intent := c.add(chain.Record{Kind: chain.Intent, Job: "job_1"})
			c.add(chain.Record{Kind: chain.Outcome, Intent: intent, Result: "succeeded", Scripts: &chain.Scripts{Count: 1, List: []chain.AcceptedScript{{Digest: "sha256:x", Name: "x"}}}})
		}, "", ""},
		{"a record of a version that listed none", func(c *told) {
			intent := c.add(chain.Record{Kind: chain.Intent, Job: "job_1"})
			c.add(chain.Record{Kind: chain.Outcome, Intent: intent, Result: "succeeded"})
		}, "", ""},
		{"a list that was left out for its size", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.accept(2, jobspec.OutcomeSucceeded, up, clean).List = nil
		}, "", "does not list"},
		{"records were given up", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.add(chain.Record{Kind: chain.Event, Accepted: &chain.Acceptance{Reason: "lost", Abandoned: []chain.Head{{Seq: 9}}}})
		}, "", "gives records up"},
		{"accepted after records were given up", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.add(chain.Record{Kind: chain.Event, Accepted: &chain.Acceptance{Reason: "lost", Abandoned: []chain.Head{{Seq: 9}}}})
			c.accept(2, jobspec.OutcomeSucceeded, clean)
		}, "clean rel_2 job_2", ""},
		{"records that were taken back lose nothing", func(c *told) {
			c.accept(1, jobspec.OutcomeSucceeded, up)
			c.add(chain.Record{Kind: chain.Event, Accepted: &chain.Acceptance{Reason: "restored", Restored: 2}})
		}, "up rel_1 job_1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := &told{t: t}
			tc.tell(c)
			restored := scripts.FromChain(c.records)
			var got []string
			for _, a := range restored.Scripts() {
				got = append(got, a.Script.Action.Name+" "+a.ReleaseID+" "+a.JobID)
			}
			if got := strings.Join(got, ", "); got != tc.want {
				t.Errorf("accepted: %s, want %s", got, tc.want)
			}
			if tc.nothing == "" && restored.Nothing != "" || !strings.Contains(restored.Nothing, tc.nothing) {
				t.Errorf("why nothing: %q, want %q", restored.Nothing, tc.nothing)
			}
		})
	}
}

// A script of which only the digest is known runs when an order brings its text, and
// no other text; a release that brings it asks nobody.
func TestRestoredScriptsFindTheirTexts(t *testing.T) {
	t.Parallel()
	up := script("up", "curl a\n", func(s *jobspec.Script) { s.Inputs, s.Role = []string{"X"}, "maintenance" })
	clean := script("clean", "rm x\n")
	c := &told{t: t}
	c.accept(1, jobspec.OutcomeSucceeded, up, clean)
	path := filepath.Join(t.TempDir(), "scripts.json")
	if err := scripts.Restore(path, scripts.FromChain(c.records)); err != nil {
		t.Fatal(err)
	}
	set, err := scripts.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	action := up.Action
	action.Inputs = map[string]string{"X": "secret"}
	if _, ok := set.Find(script("up", "curl b\n").Action, 30); ok {
		t.Error("another text of the same name is found")
	}
	before, _ := set.Position()
	review, err := scripts.Compare(set.List(), jobspec.Release{Scripts: []jobspec.Script{up, clean}})
	if err != nil || !review.Nothing() {
		t.Errorf("the same release asks: %+v (%v)", review, err)
	}
	if review, err = scripts.Compare(set.List(), jobspec.Release{Scripts: []jobspec.Script{clean}}); err != nil || len(review.Gone) != 1 {
		t.Fatalf("review = %+v (%v)", review, err)
	}
	if got := review.Summary().Objects[0].Fields[0].Before; got != digest(t, up) {
		t.Errorf("what goes is shown as %s, want the accepted digest", got)
	}
	a, ok := set.Find(action, 30)
	if !ok || a.NoText || a.Script.Role != "maintenance" || !a.Script.Takes("X") {
		t.Fatalf("an order with the accepted text: %+v %v", a, ok)
	}
	set.Learn(clean)
	again, err := scripts.Open(path) // with texts, whose digests it computes
	if err != nil {
		t.Fatal(err)
	}
	want := []jobspec.Script{clean, up} // without the value of the run
	var got []jobspec.Script
	for _, a := range again.List() {
		got = append(got, a.Script)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("on disk (-want +got):\n%s", diff)
	}
	if after, _ := again.Position(); after != before {
		t.Error("learning a text moved the set")
	}
	// The set of this machine stays when a takeover is repeated.
	if err := again.Replace(scripts.Acceptance{From: 1, JobID: "job_9", Now: noon}); err != nil {
		t.Fatal(err)
	}
	if err := scripts.Restore(path, scripts.FromChain(c.records)); err != nil {
		t.Fatal(err)
	}
	if again, err = scripts.Open(path); err != nil || len(again.List()) != 0 {
		t.Errorf("a repeated takeover brought %v back (%v)", again.List(), err)
	}
}

// What the chain says of a set is what is restored from it.
func TestNamedIsRestored(t *testing.T) {
	t.Parallel()
	set, err := scripts.Open(filepath.Join(t.TempDir(), "scripts.json"))
	if err != nil {
		t.Fatal(err)
	}
	up, clean := script("up", "curl a\n"), script("clean", "rm x\n")
	for i, list := range [][]jobspec.Script{{up, clean}, {up}} {
		a := scripts.Acceptance{From: int64(i), Release: jobspec.Release{Scripts: list}, Keep: []string{digest(t, clean)}, JobID: "job_1", Now: noon}
		if err := set.Replace(a); err != nil {
			t.Fatal(err)
		}
	}
	named := set.Named(chain.Scripts{ReleaseID: "rel_1", Release: 1})
	path := filepath.Join(t.TempDir(), "other.json")
	err = scripts.Restore(path, scripts.FromChain([]chain.Record{
		{Seq: 1, Kind: chain.Intent, Scripts: &chain.Scripts{}},
		{Seq: 2, Kind: chain.Outcome, Intent: 1, Result: "succeeded", Scripts: &named},
	}))
	if err != nil {
		t.Fatal(err)
	}
	other, err := scripts.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	have, version := set.Position()
	if got, v := other.Position(); got != have || v != version {
		t.Errorf("restored %s %d, want %s %d", got, v, have, version)
	}
	// The one that only the schedule keeps goes with it there, too.
	if err := other.Settle(nil); err != nil || len(other.List()) != 1 {
		t.Errorf("without a schedule: %v (%v)", other.List(), err)
	}
}
