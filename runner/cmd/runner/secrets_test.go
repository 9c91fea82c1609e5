package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/secretstore"
)

// TestSecretsOfTheCommandLine sets secrets as a customer does.
func TestSecretsOfTheCommandLine(t *testing.T) {
	data := t.TempDir()
	dir, err := datadir.At(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Make(0); err != nil {
		t.Fatal(err)
	}
	run := func(input string, args ...string) (string, error) {
		cmd := newRoot()
		var out bytes.Buffer
		cmd.SetArgs(append([]string{"--data", data, "secrets"}, args...))
		cmd.SetIn(strings.NewReader(input))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	if _, err := run("", "list"); err == nil || !strings.Contains(err.Error(), "not enrolled") {
		t.Errorf("before the enrolment: %v", err)
	}
	runner := datadir.Runner{RunnerID: "run1", OrgID: "org1", InstallID: "ins1", Kind: "install"}
	if err := datadir.WriteJSON(dir.Runner(), runner); err != nil {
		t.Fatal(err)
	}
	keys, err := dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	store := secretstore.Store{Dir: dir.CustomerSecrets(), Runner: runner, Keys: keys}
	err = datadir.WriteJSON(filepath.Join(mkdir(t, dir.CustomerSecrets()), "declared"), []customersecret.Declaration{
		{Name: "token", Description: "of the API", Required: true}, {Name: "key", AutoGenerate: true}, {Name: "own", AutoGenerate: true, UserConfigurable: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	const value = "correct horse battery staple"
	if out, err := run("", "list"); err != nil || !strings.Contains(out, "MISSING") {
		t.Errorf("list: %s%v", out, err)
	}
	if out, err := run(value, "set", "token", "hunter2hunter2"); err == nil || strings.Contains(out+err.Error(), "hunter2") {
		t.Errorf("a value as an argument: %s%v", out, err)
	}
	if out, err := run("short\n", "set", "token"); err == nil || strings.Contains(out+err.Error(), "short\n") {
		t.Errorf("a short value: %s%v", out, err)
	}
	if out, err := run(value+"\n", "set", "token"); err != nil || !strings.Contains(out, "version 1") || strings.Contains(out, "horse") {
		t.Errorf("set: %s%v", out, err)
	}
	k, err := store.Get("token")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.Open(k); err != nil || got != value {
		t.Errorf("kept %q, %v", got, err)
	}
	if _, err := run(value, "set", "key"); err == nil || !strings.Contains(err.Error(), "rotate") {
		t.Errorf("a secret that the runner makes: %v", err)
	}
	if out, err := run(value, "set", "own"); err != nil {
		t.Errorf("one that the customer may set: %s%v", out, err)
	}
	if _, err := run("", "generate", "token"); err == nil {
		t.Error("generate took the place of a value")
	}
	if out, err := run("", "rotate", "token"); err != nil || !strings.Contains(out, "version 2") {
		t.Errorf("rotate: %s%v", out, err)
	}
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run("", "set", "token", "--file", file); err != nil || !strings.Contains(out, "version 3") {
		t.Errorf("set from a file: %s%v", out, err)
	}
	if out, err := run("", "show-version", "token"); err != nil || !strings.Contains(out, `"version": 3`) || strings.Contains(out, "sealed") {
		t.Errorf("show-version: %s%v", out, err)
	}
	if out, err := run("", "unset", "token"); err != nil {
		t.Errorf("unset: %s%v", out, err)
	}
	if out, err := run("", "list", "--json"); err != nil || strings.Contains(out, "horse") || !strings.Contains(out, `"set": false`) {
		t.Errorf("list: %s%v", out, err)
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
