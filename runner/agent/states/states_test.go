package states_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/states"
)

// A look for drift gets exactly the state that it is told of, and no way to write one.
func TestAlone(t *testing.T) {
	t.Parallel()
	s := states.Store{Dir: filepath.Join(t.TempDir(), "states")}
	for serial, digest := range map[int64]string{7: "d7", 8: "d8"} {
		if err := s.Put(states.Kept{ResourceID: "res_1", Lineage: "lin", Serial: serial, Digest: digest, Sealed: []byte(digest), At: time.Unix(serial, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name, resource string
		mark           jobspec.StateMark
		want           string // "" for none
	}{
		{name: "the newest", resource: "res_1", mark: jobspec.StateMark{Lineage: "lin", Serial: 8, Digest: "d8"}, want: "d8"},
		{name: "an older one", resource: "res_1", mark: jobspec.StateMark{Lineage: "lin", Serial: 7, Digest: "d7"}, want: "d7"},
		{name: "another text under the serial", resource: "res_1", mark: jobspec.StateMark{Lineage: "lin", Serial: 8, Digest: "d7"}},
		{name: "another lineage", resource: "res_1", mark: jobspec.StateMark{Lineage: "other", Serial: 8, Digest: "d8"}},
		{name: "another resource", resource: "res_2", mark: jobspec.StateMark{Lineage: "lin", Serial: 8, Digest: "d8"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			alone := states.Alone{Store: s, Mark: tc.mark}
			state, err := alone.State(t.Context(), tc.resource, runnerapi.Attempt{})
			switch {
			case tc.want == "" && !errors.Is(err, states.ErrNone):
				t.Errorf("got %+v, %v", state, err)
			case tc.want != "" && (err != nil || string(state.Body) != tc.want || state.Serial != tc.mark.Serial):
				t.Errorf("got %+v, %v", state, err)
			}
			_, lock := alone.LockState(t.Context(), tc.resource, runnerapi.LockRequest{})
			for what, err := range map[string]error{
				"write": alone.PutState(t.Context(), tc.resource, runnerapi.StateWrite{}), "lock": lock, "unlock": alone.UnlockState(t.Context(), tc.resource, runnerapi.UnlockRequest{}),
			} {
				if err == nil {
					t.Errorf("it takes a %s", what)
				}
			}
		})
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	s := states.Store{Dir: filepath.Join(t.TempDir(), "states")}
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("before the first: %v, %v", list, err)
	}
	put := func(id, kind, name string, serial int64) {
		t.Helper()
		k := states.Kept{ResourceID: id, Kind: kind, Name: name, Lineage: "lin", Serial: serial, Digest: "d", Sealed: []byte("x"), At: time.Unix(serial, 0).UTC()}
		if err := s.Put(k); err != nil {
			t.Fatal(err)
		}
	}
	for serial := range int64(states.Versions + 3) {
		put("res_1", "component", "api", serial)
		put("res_1", "component", "api", serial) // given out again
	}
	put("res_2", "sandbox", "sandbox", 4)
	put("res_3", "component", "web", 1)
	put("res_4", "component", "web", 2)
	var names []string
	list, err := s.List()
	for _, k := range list {
		names = append(names, k.Name)
	}
	if diff := cmp.Diff([]string{"sandbox", "api", "web", "web"}, names); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	history, err := s.History("api")
	if err != nil || len(history) != states.Versions || history[0].Serial != states.Versions+2 || history[states.Versions-1].Serial != 3 {
		t.Errorf("%v, %+v", err, history)
	}
	if k, err := s.Find("res_1", ""); err != nil || k.Serial != states.Versions+2 {
		t.Errorf("newest: %+v, %v", k, err)
	}
	if k, err := s.Find("api", "4"); err != nil || k.Serial != 4 {
		t.Errorf("serial 4: %+v, %v", k, err)
	}
	if _, err := s.Find("api", "0"); !errors.Is(err, states.ErrNone) || !strings.Contains(err.Error(), "there are 7, 6, 5, 4, 3") {
		t.Errorf("one that was dropped: %v", err)
	}
	if _, err := s.Find("db", ""); !errors.Is(err, states.ErrNone) {
		t.Errorf("one that never was: %v", err)
	}
	if _, err := s.Find("web", ""); err == nil || !strings.Contains(err.Error(), "name one by its id") {
		t.Errorf("two of a name: %v", err)
	}
	put("../../outside", "component", "evil", 1)
	err = filepath.WalkDir(s.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		return err
	})
	if entries, _ := os.ReadDir(s.Dir); err != nil || len(entries) != 5 {
		t.Errorf("%v, %d directories", err, len(entries))
	}
}

const aState = `{"version":4,"terraform_version":"1.11.4","serial":3,"lineage":"lin",
"outputs":{"url":{"value":"http://x"},"token":{"value":"t0ken-of-state","sensitive":true}},
"resources":[
 {"module":"module.db[\"a\"]","mode":"managed","type":"random_password","name":"p","instances":[
  {"index_key":0,"status":"tainted","attributes":{"result":"hunter2-hunter2","length":15,"big":9007199254740993},"sensitive_attributes":[[{"type":"get_attr","value":"result"}]]}]},
 {"mode":"data","type":"aws_db","name":"d","instances":[
  {"attributes":{"url":"postgres://u:hunter2-hunter2@h/db","conf":{"inner":{"key":"k-in-a-map"},"open":1},"list":["a",{"x":"t0ken-of-state"}]},
   "sensitive_attributes":[[{"type":"get_attr","value":"conf"},{"type":"get_attr","value":"inner"},{"type":"get_attr","value":"key"}]]}]},
 {"mode":"managed","type":"b","name":"set","instances":[
  {"index_key":"k","deposed":"ab12","attributes":{"block":[{"secret":"deep-secret","open":"y"}]},
   "sensitive_attributes":[[{"type":"get_attr","value":"block"},{"type":"index","value":{"value":0,"type":"number"}},{"type":"get_attr","value":"secret"}]]}]}]}`

func TestShow(t *testing.T) {
	t.Parallel()
	shown, err := states.Show([]byte(aState), false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"t0ken-of-state", "hunter2", "k-in-a-map", "deep-secret"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("it shows %s: %s", secret, text)
		}
	}
	for _, open := range []string{
		`"address":"module.db[\"a\"].random_password.p[0]","tainted":true`, `"address":"data.aws_db.d"`, `"address":"b.set[\"k\"] (deposed ab12)"`,
		`"big":9007199254740993`, `"url":"http://x"`, `"open":1`, `"length":15`, `"result":"(sensitive)"`, `"inner":{"key":"(sensitive)"}`,
	} {
		if !strings.Contains(string(text), open) {
			t.Errorf("it lacks %s: %s", open, text)
		}
	}
	revealed, err := states.Show([]byte(aState), true)
	if err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(revealed)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"t0ken-of-state", "postgres://u:hunter2-hunter2@h/db", "k-in-a-map", "deep-secret"} {
		if !strings.Contains(string(text), secret) {
			t.Errorf("revealed, it lacks %s: %s", secret, text)
		}
	}
	if strings.Contains(string(text), states.Masked) {
		t.Errorf("revealed, something is masked: %s", text)
	}
	for _, bad := range []string{"", "{", `{"version":3,"secret-x":1}`, `[]`} {
		if _, err := states.Show([]byte(bad), false); err == nil || strings.Contains(err.Error(), "secret-x") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
