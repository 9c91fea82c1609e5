package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/roles"
)

// TestRolesOfTheCommandLine switches roles as a customer does.
func TestRolesOfTheCommandLine(t *testing.T) {
	data := t.TempDir()
	dir, err := datadir.At(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Make(0); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := newRoot()
		var out bytes.Buffer
		cmd.SetArgs(append([]string{"--data", data, "roles"}, args...))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	if _, err := run("list"); err == nil || !strings.Contains(err.Error(), "not enrolled") {
		t.Errorf("before the enrolment: %v", err)
	}
	if err := datadir.WriteJSON(dir.Runner(), datadir.Runner{RunnerID: "run1", OrgID: "org1", InstallID: "ins1", Kind: "install"}); err != nil {
		t.Fatal(err)
	}
	if out, err := run("list"); err != nil || !strings.Contains(out, "declares no role") {
		t.Errorf("without a release: %s%v", out, err)
	}
	store := roles.Store{Dir: dir.Roles(), Now: time.Now}
	err = store.Declare([]customerrole.Role{{Written: "{{ .nuon.id }}-repair", Name: "acme-repair", Known: true, Kind: customerrole.BreakGlass, Description: "Repairs\x1b[2J."}, {Written: "{{ .x }}", Name: "{{ .x }}"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"list"}, "acme-repair  off", 0},
		{[]string{"enable"}, "one role", exitUsage},
		{[]string{"enable", "acme-repar"}, `no such role: "acme-repar"; did you mean acme-repair?`, exitFailed},
		{[]string{"enable", "{{ .x }}"}, "next deploy", exitFailed},
		{[]string{"enable", "acme-repair", "--for", "0s"}, "not a time", exitUsage},
		{[]string{"enable", "acme-repair", "--for", "721h"}, "not a time", exitUsage},
		{[]string{"enable", "acme-repair", "--reason", strings.Repeat("x", 600)}, "longer than", exitUsage},
		{[]string{"list", "--output", "yaml"}, "not table or json", exitUsage},
		{[]string{"disable", "acme-repair"}, "is off already", 0},
		{[]string{"enable", "acme-repair", "--for", "2h", "--reason", "ticket"}, "role acme-repair is on until", 0},
		{[]string{"enable", "acme-repair"}, "is on already", 0},
		{[]string{"enable", "acme-repair", "--for", "4h"}, "switch it off first", exitFailed},
		{[]string{"list"}, "acme-repair  ON", 0},
		{[]string{"disable", "acme-repair"}, "no agent is running", 0},
		{[]string{"--help"}, "nothing that the vendor sends does", 0},
	} {
		out, err := run(tc.args...)
		if err != nil {
			out += err.Error()
		}
		if exitCode(err) != tc.code || !strings.Contains(out, tc.says) {
			t.Errorf("roles %q: exit %d, %s; want %d with %q", tc.args, exitCode(err), out, tc.code, tc.says)
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("roles %q steers the terminal: %q", tc.args, out)
		}
	}
	out, err := run("list", "-o", "json")
	var list []shownRole
	if err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list) != 2 || list[0].On || list[0].By == "" {
		t.Errorf("list as JSON: %s%v", out, err)
	}
	d, _, err := store.Read()
	if err != nil || len(d.Log) != 2 || d.Log[0].Reason != "ticket" {
		t.Errorf("kept: %+v, %v", d, err)
	}
}
