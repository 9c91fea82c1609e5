package scripts_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func script(name, text string, edit ...func(*jobspec.Script)) jobspec.Script {
	s := jobspec.Script{
		Action: jobspec.Action{Name: name, ReadOnly: true, Steps: []jobspec.ActionStep{{Name: "one", InlineContents: text}}},
		Cron:   "* * * * *", TimeoutSeconds: 30, HealthCheck: true,
	}
	for _, e := range edit {
		e(&s)
	}
	return s
}

func digest(t *testing.T, s jobspec.Script) string {
	t.Helper()
	d, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func accepted(t *testing.T, list ...jobspec.Script) []scripts.Accepted {
	t.Helper()
	var out []scripts.Accepted
	for _, s := range list {
		out = append(out, scripts.Accepted{Digest: digest(t, s), Script: s})
	}
	return out
}

func TestCompare(t *testing.T) {
	t.Parallel()
	hourly := func(s *jobspec.Script) { s.Cron = "0 * * * *" }
	up, upChanged, clean := script("up", "curl a\n"), script("up", "curl b\n"), script("clean", "rm x\n")
	upHourly := script("up", "curl a\n", hourly)
	for _, tc := range []struct {
		name    string
		have    []jobspec.Script
		release []jobspec.Script
		want    scripts.Review
		nothing bool
	}{
		{name: "no scripts at all ask nobody", nothing: true},
		{name: "the first release brings all of them", release: []jobspec.Script{up, clean}, want: scripts.Review{New: []jobspec.Script{clean, up}}},
		{name: "the same again asks nobody", have: []jobspec.Script{up}, release: []jobspec.Script{up}, nothing: true},
		{name: "twice the same is one", release: []jobspec.Script{up, up}, want: scripts.Review{New: []jobspec.Script{up}}},
		{name: "another text is a change", have: []jobspec.Script{up, clean}, release: []jobspec.Script{upChanged, clean},
			want: scripts.Review{Changed: []scripts.Pair{{Before: accepted(t, up)[0], After: upChanged}}}},
		{name: "another schedule is a change", have: []jobspec.Script{up}, release: []jobspec.Script{upHourly},
			want: scripts.Review{Changed: []scripts.Pair{{Before: accepted(t, up)[0], After: upHourly}}}},
		{name: "a second schedule is new", have: []jobspec.Script{up}, release: []jobspec.Script{up, upHourly},
			want: scripts.Review{New: []jobspec.Script{upHourly}}},
		{name: "the one of the same schedule is what it was", have: []jobspec.Script{upHourly, up}, release: []jobspec.Script{upHourly, upChanged},
			want: scripts.Review{Changed: []scripts.Pair{{Before: accepted(t, up)[0], After: upChanged}}}},
		{name: "what only goes asks nobody", have: []jobspec.Script{up, clean}, release: []jobspec.Script{up},
			want: scripts.Review{Gone: accepted(t, clean)}, nothing: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := scripts.Compare(accepted(t, tc.have...), jobspec.Release{ID: "rel", Scripts: tc.release})
			if err != nil {
				t.Fatal(err)
			}
			if got.Nothing() != tc.nothing {
				t.Errorf("nothing is new: %v, want %v", got.Nothing(), tc.nothing)
			}
			empty := func(r *scripts.Review) { // nil and empty are the same here
				if len(r.New) == 0 {
					r.New = nil
				}
				if len(r.Gone) == 0 {
					r.Gone = nil
				}
			}
			empty(&got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummaryShowsWholeTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("echo a line that is there\n", 400)
	before := script("up", long+"curl a\n", func(s *jobspec.Script) { s.Action.Steps[0].EnvVars = map[string]string{"A": "b"} })
	after := script("up", long+"curl b\n", func(s *jobspec.Script) { s.Role = "maintenance" })
	r := scripts.Review{New: []jobspec.Script{script("new", long)}, Changed: []scripts.Pair{{Before: accepted(t, before)[0], After: after}}, Gone: accepted(t, script("old", "x"))}
	got := r.Summary()
	if got.Create != 1 || got.Update != 1 || got.Delete != 1 || len(got.Objects) != 3 {
		t.Fatalf("summary = %+v", got)
	}
	fields := func(o jobspec.ObjectChange) map[string]jobspec.FieldChange {
		all := map[string]jobspec.FieldChange{}
		for _, f := range o.Fields {
			all[f.Path] = f
		}
		return all
	}
	if text := fields(got.Objects[0])["step 1 one: script"].After; text != long {
		t.Errorf("the new text is cut: %d of %d bytes", len(text), len(long))
	}
	changed := fields(got.Objects[1])
	if text := changed["step 1 one: script, changed"].After; !strings.HasSuffix(text, "- curl a\n+ curl b\n") || strings.Count(text, "\n") != 402 {
		t.Errorf("the changed text ends %q", text[max(0, len(text)-80):])
	}
	for path, want := range map[string]jobspec.FieldChange{
		"role":              {Path: "role", After: "maintenance"},
		"step 1 one: env A": {Path: "step 1 one: env A", Before: "b"},
		"schedule":          {Path: "schedule", After: "* * * * *"},
	} {
		if diff := cmp.Diff(want, changed[path]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if f := fields(got.Objects[2])["digest"]; f.Before == "" || f.After != "" {
		t.Errorf("what goes = %+v", f)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, before, after, want string }{
		{"nothing", "", "", ""},
		{"all new", "", "a\nb\n", "+ a\n+ b\n"},
		{"all gone", "a\n", "", "- a\n"},
		{"in the middle", "a\nb\nc\n", "a\nx\nc\n", "  a\n- b\n+ x\n  c\n"},
		{"moved", "a\nb\nc\n", "b\nc\na\n", "- a\n  b\n  c\n+ a\n"},
		{"the last line feed", "a\n", "a", "- a\n+ a  (no line feed at the end)\n"},
		{"blanks", "a\n", "a \n", "- a\n+ a \n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, scripts.Diff(tc.before, tc.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A record is made of the first run, of each change of verdict, and once an hour.
func TestTallySaysWhatToRecord(t *testing.T) {
	t.Parallel()
	type event struct {
		key    string
		digest string
		after  time.Duration // noon
		ok     bool
		ending bool // Due as the agent ends, instead of a run
		look   bool // Due, instead of a run
		want   string
	}
	for _, tc := range []struct {
		name   string
		events []event
	}{
		{"first, change, change back", []event{
			{key: "1", digest: "d", ok: true, want: "first run of script up ok"},
			{key: "2", digest: "d", ok: true},
			{key: "3", digest: "d", want: "script up: failed after ok failed"},
			{key: "4", digest: "d"},
			{key: "5", digest: "d", ok: true, want: "script up: ok after failed ok"},
		}},
		{"another digest is another script", []event{
			{key: "1", digest: "d", ok: true, want: "first run of script up ok"},
			{key: "2", digest: "e", want: "first run of script up failed"},
		}},
		{"a run is counted once, also over restarts", []event{
			{key: "1", digest: "d", want: "first run of script up failed"},
			{key: "1", digest: "d"},
			{ending: true, want: "runs of scripts 0 ok, 1 failed"},
			{key: "1", digest: "d"},
			{ending: true},
		}},
		{"an hour is recorded once", []event{
			{key: "1", digest: "d", ok: true, want: "first run of script up ok"},
			{look: true, after: 59 * time.Minute},
			{key: "2", digest: "d", ok: true, after: 59 * time.Minute},
			{look: true, after: time.Hour, want: "runs of scripts 2 ok, 0 failed"},
			{look: true, after: 2 * time.Hour},
			{key: "3", digest: "d", ok: true, after: 2 * time.Hour},
			{look: true, after: 2*time.Hour + 59*time.Minute},
			{look: true, after: 3 * time.Hour, want: "runs of scripts 1 ok, 0 failed"},
		}},
		{"a clock that went back does not keep the record", []event{
			{key: "1", digest: "d", ok: true, want: "first run of script up ok"},
			{look: true, after: -time.Hour, want: "runs of scripts 1 ok, 0 failed"},
		}},
		{"nothing to record at the end", []event{{ending: true}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tally := scripts.Tally{}
			for i, e := range tc.events {
				var records []chain.Record
				now := noon.Add(e.after)
				if e.look || e.ending {
					tally, records = tally.Due(now, e.ending)
				} else {
					tally, records = tally.Add(scripts.Run{Name: "up", Digest: e.digest, Key: e.key, At: now, OK: e.ok}, now)
				}
				got := ""
				for _, r := range records {
					got += r.What + " " + r.Result
				}
				if got != e.want {
					t.Errorf("event %d: recorded %q, want %q", i+1, got, e.want)
				}
			}
		})
	}
}

func TestTallyDigestNamesEveryRun(t *testing.T) {
	t.Parallel()
	record := func(runs ...scripts.Run) string {
		tally := scripts.Tally{}
		for _, r := range runs {
			tally, _ = tally.Add(r, noon)
		}
		_, records := tally.Due(noon, true)
		return records[0].Detail
	}
	one, two := scripts.Run{Digest: "d", Key: "1", At: noon, OK: true}, scripts.Run{Digest: "d", Key: "2", At: noon.Add(time.Minute), OK: true}
	failed := two
	failed.OK = false
	later := two
	later.At = later.At.Add(time.Second)
	same := record(one, two)
	for name, other := range map[string]string{"order": record(two, one), "outcome": record(one, failed), "time": record(one, later), "count": record(one)} {
		if other == same {
			t.Errorf("another %s gives the same record: %s", name, same)
		}
	}
	if record(one, two) != same {
		t.Error("the same runs give another record")
	}
}

func TestRefusalIsRecordedOncePerDigest(t *testing.T) {
	t.Parallel()
	tally, first := scripts.Tally{}.Refuse("up", "sha256:x", "settings", noon)
	if len(first) != 1 || first[0].Result != "refused" {
		t.Fatalf("records = %+v", first)
	}
	tally, again := tally.Refuse("up", "sha256:x", "settings", noon)
	_, other := tally.Refuse("up", "sha256:y", "settings", noon)
	if len(again) != 0 || len(other) != 1 {
		t.Errorf("again %d, other %d records; want 0 and 1", len(again), len(other))
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "scripts.json")
	set, err := scripts.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	empty, version := set.Position()
	up, clean, other := script("up", "curl a\n"), script("clean", "rm x\n"), script("other", "x\n")
	one := jobspec.Release{ID: "rel_1", Number: 1, Scripts: []jobspec.Script{up, clean}}
	if err := set.Replace(scripts.Acceptance{From: version, Release: one, JobID: "job_1", Now: noon}); err != nil {
		t.Fatal(err)
	}
	if err := set.Replace(scripts.Acceptance{From: version, Release: one, JobID: "job_2", Now: noon}); !errors.Is(err, scripts.ErrMoved) {
		t.Errorf("a set that moved is replaced: %v", err)
	}
	first, version := set.Position()
	if first == empty || version != 1 || set.By() != "job_1" {
		t.Errorf("position = %s %d by %s", first, version, set.By())
	}

	action := up.Action
	action.Inputs = map[string]string{"X": "y"}
	if a, ok := set.Find(action, 30); !ok || a.Digest != digest(t, up) {
		t.Errorf("an order that carries the script: %v %v", a, ok)
	}
	if _, ok := set.Find(action, 31); ok {
		t.Error("an order with another timeout finds the script")
	}
	changed := script("up", "curl a \n")
	if _, ok := set.Find(changed.Action, 30); ok {
		t.Error("an order with another text finds the script")
	}

	two := jobspec.Release{ID: "rel_2", Number: 2, Scripts: []jobspec.Script{up, other}}
	if err := set.Replace(scripts.Acceptance{From: version, Release: two, Keep: []string{digest(t, clean), "sha256:never"}, JobID: "job_3", Now: noon.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	again, err := scripts.Open(path) // what a later agent sees
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range again.List() {
		got = append(got, a.Script.Action.Name+" "+a.ReleaseID+" "+a.JobID)
	}
	if diff := cmp.Diff([]string{"clean rel_1 job_1", "other rel_2 job_3", "up rel_1 job_1"}, got); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	// Settings that schedule it keep it; those that do not, end it.
	for _, tc := range []struct {
		scheduled []string
		want      int
	}{{[]string{digest(t, clean)}, 3}, {[]string{digest(t, up)}, 2}, {nil, 2}} {
		if err := again.Settle(tc.scheduled); err != nil || len(again.List()) != tc.want {
			t.Errorf("with %v scheduled: %d accepted, want %d (%v)", tc.scheduled, len(again.List()), tc.want, err)
		}
	}
	if err := again.Replace(scripts.Acceptance{From: 2, JobID: "job_4", Now: noon}); err != nil {
		t.Fatal(err)
	}
	if last, _ := again.Position(); last != empty || len(again.List()) != 0 {
		t.Errorf("a set that was emptied has %v", again.List())
	}
}

// records stands in for the chain.
type records []chain.Record

func (r *records) Append(_ context.Context, record chain.Record) (chain.Head, error) {
	*r = append(*r, record)
	return chain.Head{}, nil
}

func TestLedgerGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.json")
	var got records
	open := func() *scripts.Ledger {
		l, err := scripts.OpenLedger(path, &got, nil, func() time.Time { return noon })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	run := scripts.Run{Name: "up", Digest: "d", Key: "1", At: noon, OK: true}
	if err := open().Ran(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	l := open()
	if err := errors.Join(l.Ran(t.Context(), run), l.Flush(t.Context(), false), l.Flush(t.Context(), true), l.Flush(t.Context(), true)); err != nil {
		t.Fatal(err)
	}
	var what []string
	for _, r := range got {
		what = append(what, r.What)
	}
	if diff := cmp.Diff([]string{"first run of script up", "runs of scripts"}, what); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// A count that cannot be written is written by the next try, which records
// nothing twice.
func TestLedgerRecordsOnceWhenTheCountCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(dir, "runs.json")
	var got records
	l, err := scripts.OpenLedger(path, &got, nil, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	run := scripts.Run{Name: "up", Digest: "d", Key: "1", At: noon, OK: true}
	for range 3 {
		if err := l.Ran(t.Context(), run); err == nil {
			t.Fatal("a count that is not on disk was taken for written")
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Ran(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 {
		t.Errorf("%d records, want 1: %v", len(got), got)
	}
	if l, err = scripts.OpenLedger(path, &got, nil, func() time.Time { return noon }); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context(), true); err != nil || len(got) != 2 || got[1].Result != "1 ok, 0 failed" {
		t.Errorf("what a later agent records: %v, %v", got, err)
	}
}

// Who sends refused orders all day makes the chain grow by a bounded number of
// records each hour, and none of them goes uncounted.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "script-runs.json")
	now, got := noon, records{}
	open := func() *scripts.Ledger {
		l, err := scripts.OpenLedger(path, &got, nil, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	const hours, each = 3, 500
	for i := range hours * each {
		now = noon.Add(time.Duration(i) * time.Hour / each)
		if i == each+200 || i == each+300 {
			l = open() // killed: what was counted is on disk
		}
		var err error
		if i%2 == 0 {
			err = l.Refusal(t.Context(), chain.Record{Actor: "runner", Kind: chain.Event, What: "run", Result: "refused", Detail: fmt.Sprint(i)})
		} else {
			err = l.Refused(t.Context(), "evil", fmt.Sprintf("sha256:%d", i), "order job")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	listed, unlisted := 0, 0
	for _, r := range got {
		if r.What != "refusals that are not listed" {
			listed++
			continue
		}
		var n int
		if _, err := fmt.Sscanf(r.Detail, "%d since", &n); err != nil || !strings.Contains(r.Detail, "digest sha256:") {
			t.Errorf("detail = %q (%v)", r.Detail, err)
		}
		unlisted += n
	}
	if listed != hours*30 || unlisted != hours*(each-30) {
		t.Errorf("%d are listed and %d counted, want %d and %d", listed, unlisted, hours*30, hours*(each-30))
	}
	// Agents that end all the time list no more of them.
	before := len(got)
	for range 50 {
		if err := l.Refusal(t.Context(), chain.Record{Actor: "runner", Kind: chain.Event, What: "run", Result: "refused"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != before {
		t.Errorf("%d more records in the same hour", len(got)-before)
	}
	// A clock that goes back does not keep the count.
	now = noon.Add(-time.Hour)
	if err := l.Flush(t.Context(), false); err != nil || len(got) != before+1 {
		t.Errorf("%d records, want %d (%v)", len(got), before+1, err)
	}
}

// What a script heals is shown in plain words, and more of it is another script.
func TestWhatAScriptHealsIsShown(t *testing.T) {
	t.Parallel()
	heals := func(attempts int) jobspec.Script {
		return script("repair", "restart", func(s *jobspec.Script) {
			s.Cron, s.HealthCheck, s.Action.ReadOnly = "", false, false
			s.Heals = []jobspec.Heal{{Check: "component/web", UnhealthyAfter: 2, HealthyAfter: 1, Attempts: attempts, CooldownSeconds: 600}}
		})
	}
	shown := func(before []scripts.Accepted, after jobspec.Script) map[string]jobspec.FieldChange {
		t.Helper()
		r, err := scripts.Compare(before, jobspec.Release{ID: "rel", Scripts: []jobspec.Script{after}})
		if err != nil || r.Nothing() {
			t.Fatalf("nobody is asked: %+v, %v", r, err)
		}
		all := map[string]jobspec.FieldChange{}
		for _, f := range r.Summary().Objects[0].Fields {
			all[f.Path] = f
		}
		return all
	}
	const three = "BY ITSELF when component/web is unhealthy (2 times in a row), at most 3 times until it stays healthy (1 times in a row), 10m0s apart"
	if got := shown(nil, heals(3)); got["heals"].After != three || !strings.HasPrefix(got["runs"].After, "BY ITSELF when checks are unhealthy") {
		t.Errorf("shown as %+v, %+v", got["runs"], got["heals"])
	}
	if got := shown(accepted(t, heals(3)), heals(4))["heals"]; got.Before != three || got.After != strings.Replace(three, "3 times until", "4 times until", 1) {
		t.Errorf("more attempts are shown as %+v", got)
	}
	set, err := scripts.Open(filepath.Join(t.TempDir(), "scripts.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Replace(scripts.Acceptance{Release: jobspec.Release{ID: "rel", Scripts: []jobspec.Script{heals(3)}}, JobID: "job", Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if named := set.Named(chain.Scripts{}); !slices.Equal(named.List[0].Heals, []string{three}) {
		t.Errorf("the chain says %+v", named.List[0])
	}
}
