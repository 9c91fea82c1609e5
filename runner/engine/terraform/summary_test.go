package terraform

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/berth-dev/berth/pkg/jobspec"
)

type object = map[string]any

func TestFieldsOfAChange(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change tfjson.Change
		want   []jobspec.FieldChange
	}{
		{
			name:   "only what differs, by path",
			change: tfjson.Change{Before: object{"a": "1", "b": object{"c": "x", "d": "y"}}, After: object{"a": "1", "b": object{"c": "x", "d": "z"}}},
			want:   []jobspec.FieldChange{{Path: "b.d", Before: `"y"`, After: `"z"`}},
		},
		{
			name:   "elements of a list, also when it grows",
			change: tfjson.Change{Before: object{"l": []any{"a", "b"}}, After: object{"l": []any{"a", "c", "d"}}},
			want:   []jobspec.FieldChange{{Path: "l[1]", Before: `"b"`, After: `"c"`}, {Path: "l[2]", After: `"d"`}},
		},
		{
			name:   "a key with a dot",
			change: tfjson.Change{Before: object{"labels": object{"app.io/x": "1"}}, After: object{"labels": object{"app.io/x": "2"}}},
			want:   []jobspec.FieldChange{{Path: `labels["app.io/x"]`, Before: `"1"`, After: `"2"`}},
		},
		{
			name: "a sensitive leaf",
			change: tfjson.Change{
				Before: object{"password": "old", "user": "a"}, After: object{"password": "new", "user": "a"},
				BeforeSensitive: object{"password": true}, AfterSensitive: object{"password": true},
			},
			want: []jobspec.FieldChange{{Path: "password", Before: "(sensitive)", After: "(sensitive)"}},
		},
		{
			name: "a sensitive leaf deep inside of a value that is shown whole",
			change: tfjson.Change{
				Before: object{"v": "text"}, After: object{"v": []any{object{"token": "secret"}}},
				AfterSensitive: object{"v": []any{object{"token": true}}},
			},
			want: []jobspec.FieldChange{{Path: "v", Before: `"text"`, After: "(sensitive)"}},
		},
		{
			name: "what becomes sensitive is a change",
			change: tfjson.Change{
				Before: object{"a": "x"}, After: object{"a": "x"}, AfterSensitive: object{"a": true},
			},
			want: []jobspec.FieldChange{{Path: "a", Before: `"x"`, After: "(sensitive)"}},
		},
		{
			name:   "not known yet",
			change: tfjson.Change{Before: object{"id": "1"}, After: object{}, AfterUnknown: object{"id": true}},
			want:   []jobspec.FieldChange{{Path: "id", Before: `"1"`, After: "(known after apply)"}},
		},
		{
			name: "a sensitive value that is not known yet",
			change: tfjson.Change{
				Before: object{"id": "1"}, After: object{}, AfterUnknown: object{"id": true},
				BeforeSensitive: object{"id": true}, AfterSensitive: object{"id": true},
			},
			want: []jobspec.FieldChange{{Path: "id", Before: "(sensitive)", After: "(known after apply)"}},
		},
		{
			name: "a new list, part of which is not known yet",
			change: tfjson.Change{
				After:        object{"ips": []any{"10.0.0.1", nil, nil}, "disks": []any{object{"size": 4.0}}},
				AfterUnknown: object{"ips": []any{false, true, true}, "disks": []any{object{"id": true}}},
			},
			want: []jobspec.FieldChange{
				{Path: "disks", After: `[{"id":"(known after apply)","size":4}]`},
				{Path: "ips", After: `["10.0.0.1","(known after apply)","(known after apply)"]`},
			},
		},
		{
			name:   "a list in the place of a text, not known yet",
			change: tfjson.Change{Before: object{"a": "x"}, After: object{"a": []any{nil}}, AfterUnknown: object{"a": []any{true}}},
			want:   []jobspec.FieldChange{{Path: "a", Before: `"x"`, After: `["(known after apply)"]`}},
		},
		{
			name:   "a new object, without its empty fields",
			change: tfjson.Change{After: object{"a": false, "b": nil}, AfterUnknown: object{"id": true}},
			want:   []jobspec.FieldChange{{Path: "a", After: "false"}, {Path: "id", After: "(known after apply)"}},
		},
		{
			name:   "an object that goes",
			change: tfjson.Change{Before: object{"a": "x"}},
			want:   []jobspec.FieldChange{{Path: "a", Before: `"x"`}},
		},
		{
			name:   "false and true",
			change: tfjson.Change{Before: object{"a": false}, After: object{"a": true}},
			want:   []jobspec.FieldChange{{Path: "a", Before: "false", After: "true"}},
		},
		{
			name:   "a value too long to show",
			change: tfjson.Change{After: object{"a": strings.Repeat("x", 5000)}},
			want:   []jobspec.FieldChange{{Path: "a", After: `"` + strings.Repeat("x", 5000) + `"`}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, (differ{}).fields(&tc.change)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDigestsOfSensitiveValues(t *testing.T) {
	t.Parallel()
	update := func(address string, before, after object) *tfjson.ResourceChange {
		hidden := object{"password": true, "login": object{"token": true}}
		return &tfjson.ResourceChange{Address: address, Change: &tfjson.Change{
			Actions: tfjson.Actions{tfjson.ActionUpdate}, Before: before, After: after, BeforeSensitive: hidden, AfterSensitive: hidden,
			AfterUnknown: object{"login": object{"id": after["login"] != nil}},
		}}
	}
	plan := &tfjson.Plan{
		ResourceChanges: []*tfjson.ResourceChange{
			update("db.a", object{"password": "old"}, object{"password": "new"}),
			update("db.b", object{"password": "new"}, object{"password": "old", "login": "all of it"}),
		},
		OutputChanges: map[string]*tfjson.Change{
			"password": {Actions: tfjson.Actions{tfjson.ActionUpdate}, Before: "old", After: "new", BeforeSensitive: true, AfterSensitive: true},
		},
	}
	seen := map[string]string{}
	note := func(address string, f jobspec.FieldChange) {
		for side, shown := range map[string]string{"before": f.Before, "after": f.After} {
			digest, hidden := jobspec.IsSensitive(shown)
			if !hidden || digest == "" {
				t.Errorf("%s %s %s is %q", address, f.Path, side, shown)
			}
			if other, known := seen[digest]; known {
				t.Errorf("%s %s %s has the digest of %s", address, f.Path, side, other)
			}
			seen[digest] = address + " " + side
		}
	}
	s := summarise(plan, jobspec.DigestKey("key"))
	for _, o := range s.Objects {
		for _, f := range o.Fields {
			if f.Path == "login" {
				if f.After != jobspec.Sensitive {
					t.Errorf("what is known in part is %q", f.After)
				}
				continue
			}
			note(o.Address, f)
		}
	}
	note("output", s.Outputs[0])
	if len(seen) != 6 {
		t.Errorf("%d digests: %v", len(seen), seen)
	}
	back := &tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{update("db.a", object{"password": "new"}, object{"password": "old"})}}
	there, again := s.Objects[0].Fields[0], summarise(back, jobspec.DigestKey("key")).Objects[0].Fields[0]
	if there.Before != again.After || there.After != again.Before {
		t.Errorf("there %+v, and back %+v", there, again)
	}
}

func TestChangesOfAPlan(t *testing.T) {
	t.Parallel()
	resource := func(r tfjson.ResourceChange, actions ...tfjson.Action) *tfjson.Plan {
		if r.Change == nil {
			r.Change = &tfjson.Change{}
		}
		r.Change.Actions, r.Address = actions, "a.b"
		return &tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{&r}}
	}
	for _, tc := range []struct {
		name   string
		plan   *tfjson.Plan
		action string // "" means that there is nothing to do
	}{
		{"nothing", &tfjson.Plan{}, ""},
		{"no-op", resource(tfjson.ResourceChange{}, tfjson.ActionNoop), ""},
		{"a data source is read", resource(tfjson.ResourceChange{}, tfjson.ActionRead), ""},
		{"create", resource(tfjson.ResourceChange{}, tfjson.ActionCreate), "create"},
		{"update", resource(tfjson.ResourceChange{}, tfjson.ActionUpdate), "update"},
		{"delete", resource(tfjson.ResourceChange{}, tfjson.ActionDelete), "delete"},
		{"delete, then create", resource(tfjson.ResourceChange{}, tfjson.ActionDelete, tfjson.ActionCreate), "replace"},
		{"create, then delete", resource(tfjson.ResourceChange{}, tfjson.ActionCreate, tfjson.ActionDelete), "replace"},
		{"forget", resource(tfjson.ResourceChange{}, tfjson.ActionForget), "forget"},
		{"a move alone", resource(tfjson.ResourceChange{PreviousAddress: "a.old"}, tfjson.ActionNoop), "move"},
		{"an import alone", resource(tfjson.ResourceChange{Change: &tfjson.Change{Importing: &tfjson.Importing{ID: "x"}}}, tfjson.ActionNoop), "import"},
		{"an action of a newer terraform", resource(tfjson.ResourceChange{}, "transmute"), "update"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := summarise(tc.plan, nil)
			got := ""
			if len(s.Objects) > 0 {
				got = s.Objects[0].Action
			}
			if got != tc.action || changes(tc.plan) != (tc.action != "") || s.NoChange == (tc.action != "") {
				t.Errorf("action %q, want %q; changes %v, no change %v", got, tc.action, changes(tc.plan), s.NoChange)
			}
		})
	}
}

func TestOutputChangesAreChanges(t *testing.T) {
	t.Parallel()
	plan := &tfjson.Plan{OutputChanges: map[string]*tfjson.Change{
		"same": {Actions: tfjson.Actions{tfjson.ActionNoop}, Before: "x", After: "x"},
		"url":  {Actions: tfjson.Actions{tfjson.ActionUpdate}, Before: "a", After: "b"},
		"key":  {Actions: tfjson.Actions{tfjson.ActionCreate}, After: "secret", AfterSensitive: true},
	}}
	want := jobspec.PlanSummary{Outputs: []jobspec.FieldChange{{Path: "key", After: "(sensitive)"}, {Path: "url", Before: `"a"`, After: `"b"`}}}
	if diff := cmp.Diff(want, summarise(plan, nil)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestTextOfAPlan(t *testing.T) {
	t.Parallel()
	const body = "Terraform used the selected providers to generate the following execution\nplan.\n\n  # a.b will be created\n\nPlan: 1 to add.\n"
	got, ok := planText("a.b: Refreshing state... [id=1]\n\n" + body + "\n─────────\n\nSaved the plan to: /tmp/x\n")
	if !ok || got != body {
		t.Errorf("text %q, %v", got, ok)
	}
	if _, ok := planText("something else\n"); ok {
		t.Error("a plan was found where none is")
	}
}

func TestCanonicalPlanIgnoresTimeAndOrderOfSets(t *testing.T) {
	t.Parallel()
	canonical := func(raw, lock string) string {
		t.Helper()
		data, err := canonicalPlan([]byte(raw), []byte(lock))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	a := canonical(`{"timestamp":"2026-11-21T00:00:00Z","relevant_attributes":[{"resource":"b"},{"resource":"a"}],"n":12345678901234567890,"list":[2,1],"t":"<&>"}`, "")
	b := canonical(`{"t":"<&>","list":[2,1],"n":12345678901234567890,"relevant_attributes":[{"resource":"a"},{"resource":"b"}],"timestamp":"2027-01-01T00:00:00Z"}`, "")
	if want := `{"plan":{"list":[2,1],"n":12345678901234567890,"relevant_attributes":[{"resource":"a"},{"resource":"b"}],"t":"<&>"}}`; a != want || b != want {
		t.Errorf("canonical plans\n%s\n%s, want\n%s", a, b, want)
	}
	if c := canonical(`{"list":[1,2]}`, "x"); c == canonical(`{"list":[2,1]}`, "x") || c == canonical(`{"list":[1,2]}`, "y") {
		t.Error("another list or another lock file gives the same plan")
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	replace := tfjson.Actions{tfjson.ActionDelete, tfjson.ActionCreate}
	for _, tc := range []struct {
		name   string
		change tfjson.ResourceChange
		want   string
	}{
		{name: "none", change: tfjson.ResourceChange{Change: &tfjson.Change{Actions: tfjson.Actions{tfjson.ActionCreate}}}},
		{name: "fields that force a replace, in order", want: "replace because cannot update, forced by ami and disks[0].size and tags[\"a.b\"]", change: tfjson.ResourceChange{
			ActionReason: "replace_because_cannot_update", Change: &tfjson.Change{Actions: replace, ReplacePaths: []any{
				[]any{"tags", "a.b"}, []any{"disks", json.Number("0"), "size"}, []any{"ami"}, []any{"ami"},
			}},
		}},
		{name: "below a sensitive value", want: "forced by tags", change: tfjson.ResourceChange{Change: &tfjson.Change{
			Actions: replace, AfterSensitive: object{"tags": true}, ReplacePaths: []any{[]any{"tags", "secret"}},
		}}},
		{name: "moved", want: "moved from a.b", change: tfjson.ResourceChange{
			Address: "a.c", PreviousAddress: "a.b", Change: &tfjson.Change{Actions: tfjson.Actions{tfjson.ActionNoop}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := reason(&tc.change); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A data source that only the apply can read is shown and is no change: a plan of
// nothing else is applied by nobody.
func TestReads(t *testing.T) {
	t.Parallel()
	read := &tfjson.ResourceChange{Address: "data.a.b", ActionReason: "read_because_config_unknown", Change: &tfjson.Change{Actions: tfjson.Actions{tfjson.ActionRead}}}
	if s := summarise(&tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{read}}, nil); !s.NoChange || len(s.Objects) > 0 {
		t.Errorf("a read alone: %+v", s)
	}
	create := &tfjson.ResourceChange{Address: "a.c", Change: &tfjson.Change{Actions: tfjson.Actions{tfjson.ActionCreate}}}
	got := summarise(&tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{read, create}}, nil)
	want := jobspec.PlanSummary{Create: 1, Objects: []jobspec.ObjectChange{
		{Address: "a.c", Action: "create"}, {Address: "data.a.b", Action: "read", Reason: "read because config unknown"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}
