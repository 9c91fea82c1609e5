package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/states"
)

const aState = `{"version":4,"terraform_version":"1.11.4","serial":3,"lineage":"lin","outputs":{"url":{"value":"http://x"}},` +
	`"resources":[{"mode":"managed","type":"db","name":"main","instances":[{"attributes":{"host":"h","password":"hunter2-hunter2"},` +
	`"sensitive_attributes":[[{"type":"get_attr","value":"password"}]]}]}]}`

// stateOf makes a data directory with one state of the component api.
func stateOf(t *testing.T) (dir datadir.Dir, ask func(args ...string) (string, int)) {
	t.Helper()
	dir, err := datadir.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runner := datadir.Runner{RunnerID: "rnr_1", OrgID: "org_1", InstallID: "ins_1", Kind: "install"}
	if err := datadir.WriteJSON(dir.Runner(), runner); err != nil {
		t.Fatal(err)
	}
	keys, err := dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := seal.Seal(keys.Recipients(), datadir.StatePurpose(runner, "res_1", "lin", 3), []byte(aState))
	if err != nil {
		t.Fatal(err)
	}
	k := states.Kept{ResourceID: "res_1", Kind: "component", Name: "api", Lineage: "lin", Serial: 3, Digest: "d", JobID: "job_1", At: time.Now().UTC(), Sealed: sealed}
	if err := (states.Store{Dir: dir.States()}).Put(k); err != nil {
		t.Fatal(err)
	}
	return dir, func(args ...string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		root := newRoot()
		root.SetArgs(append([]string{"state"}, append(args, "--data", dir.Path())...))
		code := execute(t.Context(), root, &out, &out)
		return out.String(), code
	}
}

func TestStateCommands(t *testing.T) {
	t.Parallel()
	dir, ask := stateOf(t)
	for _, tc := range []struct {
		args  []string
		want  []string
		never string
		code  int
	}{
		{args: []string{"list"}, want: []string{"api", "component", "lin"}, never: "hunter2"},
		{args: []string{"list", "--json"}, want: []string{`"serial": 3`}, never: "sealed"},
		{args: []string{"history", "api"}, want: []string{"job_1"}},
		{args: []string{"show", "api"}, want: []string{"db.main", "  password = (sensitive)", `  host = "h"`, `  url = "http://x"`}, never: "hunter2"},
		{args: []string{"show", "res_1", "--reveal"}, want: []string{`password = "hunter2-hunter2"`}},
		{args: []string{"show", "api", "--json"}, want: []string{`"address": "db.main"`}, never: "hunter2"},
		{args: []string{"show", "web"}, want: []string{"no such state is kept here", "there are those of: api"}, code: exitFailed},
		{args: []string{"show", "api", "--serial", "2"}, want: []string{"there are 3"}, code: exitFailed},
		{args: []string{"show"}, want: []string{"the name of one component is needed"}, code: exitUsage},
	} {
		got, code := ask(tc.args...)
		if code != tc.code {
			t.Errorf("state %s: exit code %d, want %d:\n%s", strings.Join(tc.args, " "), code, tc.code, got)
		}
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("state %s: no %q in\n%s", strings.Join(tc.args, " "), want, got)
			}
		}
		if tc.never != "" && strings.Contains(got, tc.never) {
			t.Errorf("state %s shows %q:\n%s", strings.Join(tc.args, " "), tc.never, got)
		}
	}

	file := filepath.Join(t.TempDir(), "x.tfstate")
	if got, code := ask("pull", "api", "--out", file); code != 0 || strings.Contains(got, "hunter2") {
		t.Errorf("pull: %d %s", code, got)
	}
	raw, err := os.ReadFile(file)
	if err != nil || string(raw) != aState {
		t.Errorf("pulled %s, %v", raw, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got, code := ask("pull", "api", "--out", file); code != exitFailed || !strings.Contains(got, "is there already") {
		t.Errorf("pull again: %d %s", code, got)
	}

	// A state that was put in the place of another one does not open as that.
	kept, err := states.Store{Dir: dir.States()}.Find("api", "")
	if err != nil {
		t.Fatal(err)
	}
	kept.ResourceID, kept.Name = "res_2", "web"
	if err := (states.Store{Dir: dir.States()}).Put(kept); err != nil {
		t.Fatal(err)
	}
	if got, code := ask("show", "web", "--reveal"); code != exitFailed || strings.Contains(got, "hunter2") || !strings.Contains(got, "sealed for another purpose") {
		t.Errorf("a relabelled state: %d %s", code, got)
	}
}
