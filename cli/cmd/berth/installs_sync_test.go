package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// installsFolder writes an app folder named hello, plus these files.
func installsFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hello")
	all := map[string]string{
		"metadata.toml": "version = \"v2\"\n",
		"runner.toml":   "runner_type = \"local\"\n",
		"stack.toml":    "type = \"local\"\nname = \"x\"\ndescription = \"x\"\n",
		"sandbox.toml":  "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src\"\n",
		"src/main.tf":   "# sandbox\n",
		"inputs.toml": "[[group]]\nname = \"all\"\ndisplay_name = \"All\"\ndescription = \"All.\"\n" +
			"[[input]]\nname = \"port\"\ndisplay_name = \"P\"\ndescription = \"P.\"\ngroup = \"all\"\ntype = \"number\"\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// answering serves one answer to each call of the door, and keeps what was asked.
func answering(t *testing.T, answers ...string) (env map[string]string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body ctlapi.InstallsRequest
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		*asked = append(*asked, fmt.Sprintf("%s %s if-match=%s installs=%d", r.Method, r.URL, r.Header.Get("If-Match"), len(body.Installs)))
		answer := answers[0]
		answers = answers[1:]
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(answer, `"status"`) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		_, _ = fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x"}, asked
}

const (
	plannedInstalls = `{"app":{"id":"app_1","name":"hello"},"dry_run":true,"version":"v1","items":[
		{"name":"acme","action":"update","changes":[{"field":"inputs.port","old":"80","new":"8080","sensitive":false}],"kept":[],"next":"deploy"},
		{"name":"by-hand","action":"not_declared","changes":[],"kept":[]}]}`
	sameInstalls = `{"app":{"id":"app_1","name":"hello"},"dry_run":true,"version":"v2","items":[
		{"name":"acme","action":"unchanged","changes":[],"kept":[],"next":"deploy"}]}`
)

func TestInstallsSync(t *testing.T) {
	t.Parallel()
	acme := map[string]string{"installs/acme.toml": "name = \"acme\"\n[inputs]\nport = 8080\n"}
	const dryRun, carryOut = "PUT /apps/hello/installs?dry_run=true if-match= installs=1", "PUT /apps/hello/installs if-match=v1 installs=1"
	tests := []struct {
		name           string
		files          map[string]string
		flags          []string
		answers        []string
		code           int
		stdout, stderr string
		asked          []string
	}{
		{
			name: "a plan with changes", files: acme, flags: []string{"--plan"}, answers: []string{plannedInstalls}, code: command.ExitChanges, asked: []string{dryRun},
			stdout: "~ acme\n    inputs.port: \"80\" → \"8080\"\n· by-hand  (in no file; berth leaves it alone)\ninstalls of app hello: 1 to update, 1 in no file\n",
			stderr: "next: berth deploy acme\n",
		},
		{
			name: "a plan without changes", files: acme, flags: []string{"--plan"}, answers: []string{sameInstalls}, code: command.ExitOK, asked: []string{dryRun},
			stdout: "= acme\ninstalls of app hello: 1 unchanged\n", stderr: "next: berth deploy acme\nnothing to do\n",
		},
		{
			name: "nothing to do asks nobody", files: acme, answers: []string{sameInstalls}, code: command.ExitOK, asked: []string{dryRun},
			stdout: "= acme\ninstalls of app hello: 1 unchanged\n", stderr: "next: berth deploy acme\nnothing to do\n",
		},
		{
			name: "what was shown is done", files: acme, flags: []string{"--auto-approve"}, code: command.ExitOK,
			answers: []string{plannedInstalls, strings.Replace(plannedInstalls, "true", "false", 1)}, asked: []string{dryRun, carryOut},
			stdout: "installs of app hello: 1 updated, 1 in no file\n",
			stderr: "~ acme\n    inputs.port: \"80\" → \"8080\"\n· by-hand  (in no file; berth leaves it alone)\nnext: berth deploy acme\n",
		},
		{
			name: "nobody can be asked", files: acme, answers: []string{plannedInstalls}, code: command.ExitUsage, asked: []string{dryRun},
			stderr: "~ acme\n    inputs.port: \"80\" → \"8080\"\n· by-hand  (in no file; berth leaves it alone)\n" +
				"berth: this is not a terminal, so berth cannot ask: use --auto-approve to do what it just showed\n",
		},
		{
			name: "what the control plane refuses has its place", files: acme, flags: []string{"--plan"}, code: command.ExitFailed, asked: []string{dryRun},
			answers: []string{`{"type":"about:blank","title":"x","status":422,"code":"installs_invalid","detail":"no","errors":[{"pointer":"/installs/0/inputs/port","message":"input \"port\" must be a number"}]}`},
			stderr:  "berth: no\n  installs/acme.toml:3:1 input \"port\" must be a number\n",
		},
		{
			name: "faults of the files", files: map[string]string{"installs/acme.toml": "name = \"acme\"\n[inputs]\nport = \"many\"\n"}, code: command.ExitFailed,
			stderr: "installs/acme.toml:3:1 error input \"port\" must be a number\n" +
				"berth: cannot sync the installs of FOLDER: 1 error\n",
		},
		{
			name: "keys that are not carried out refuse a strict sync", files: map[string]string{"installs/acme.toml": "name = \"acme\"\n[aws_account]\nregion = \"x\"\n"},
			flags: []string{"--strict"}, code: command.ExitFailed,
			stderr: "installs/acme.toml:2:2 error key \"aws_account\" is not supported yet by this version and has no effect; it waits for cloud stacks\nberth: cannot sync the installs of FOLDER: 1 error\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := installsFolder(t, tt.files)
			env, asked := answering(t, tt.answers...)
			code, stdout, stderr := berth(t, env, append([]string{"installs", "sync", dir}, tt.flags...)...)
			stderr = strings.ReplaceAll(stderr, dir, "FOLDER")
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if diff := cmp.Diff(tt.stdout, stdout); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.stderr, stderr); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.Join(tt.asked, "\n"), strings.Join(*asked, "\n")); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstallsSyncForPrograms(t *testing.T) {
	t.Parallel()
	dir := installsFolder(t, map[string]string{"installs/acme.toml": "name = \"acme\"\n[aws_account]\nregion = \"x\"\n"})
	env, _ := answering(t, plannedInstalls)
	code, stdout, _ := berth(t, env, "installs", "sync", dir, "--plan", "-o", "json")
	var got struct {
		DryRun   bool `json:"dry_run"`
		Items    []ctlapi.InstallDecision
		Findings []struct {
			File, Code string
			Line       int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if code != command.ExitChanges || !got.DryRun || len(got.Items) != 2 || len(got.Findings) != 1 ||
		got.Findings[0].File != "installs/acme.toml" || got.Findings[0].Line != 2 || got.Findings[0].Code != "unsupported" {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}
