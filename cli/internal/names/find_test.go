package names_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/names"
)

func TestFind(t *testing.T) {
	t.Parallel()
	acme := names.Thing{ID: "ins_01aa1", Names: []string{"acme"}}
	globex := names.Thing{ID: "ins_01aa2", Names: []string{"globex"}}
	odd := names.Thing{ID: "ins_01bb3", Names: []string{"ins_01aa"}} // a name like the beginning of an id
	web := names.Thing{ID: "chg_01c1", Names: []string{"acme", "acme/web"}}
	db := names.Thing{ID: "chg_01c2", Names: []string{"acme", "acme/db"}}
	later := names.Thing{ID: "chg_01c3", Names: []string{"globex", "globex/web"}}
	installs, changes := []names.Thing{acme, globex, odd}, []names.Thing{web, db, later}
	for _, tc := range []struct {
		name  string
		typed string
		all   []names.Thing
		want  names.Result
	}{
		{"a name", "acme", installs, names.Result{One: acme, Found: true}},
		{"a whole id", "ins_01aa2", installs, names.Result{One: globex, Found: true}},
		{"a name goes before the beginning of an id", "ins_01aa", installs, names.Result{One: odd, Found: true}},
		{"the beginning of one id", "ins_01b", installs, names.Result{One: odd, Found: true, Short: true}},
		{"the beginning of two ids", "ins_01", []names.Thing{acme, globex}, names.Result{Several: []names.Thing{acme, globex}}},
		{"the kind of an id begins none", "ins_", []names.Thing{acme}, names.Result{}},
		{"an id without its kind begins none", "01aa1", []names.Thing{acme}, names.Result{}},
		{"the beginning of a name is a hint", "glob", installs, names.Result{Near: "globex"}},
		{"a typo is a hint", "amce", installs, names.Result{Near: "acme"}},
		{"other capitals are a hint", "ACME", installs, names.Result{Near: "acme"}},
		{"nothing is close", "initech", installs, names.Result{}},
		{"nothing exists", "acme", nil, names.Result{}},
		{"changes of an install", "acme", changes, names.Result{Several: []names.Thing{web, db}}},
		{"the one change of an install", "globex", changes, names.Result{One: later, Found: true}},
		{"the change of a component", "acme/db", changes, names.Result{One: db, Found: true}},
		{"a typo in a component", "acme/dbb", changes, names.Result{Near: "acme/db"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, names.Find(tc.typed, tc.all)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tc.typed, diff)
			}
		})
	}
}
