package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/reference"
)

// clientTimeout is for one run of a client's tests, builds of an app included.
const clientTimeout = 3 * time.Minute

// TestTypeScriptClient builds the package, runs its own tests, and those that
// need a control plane against a real one.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	// make test installs it where it can.
	run(t, nil, "../../dev/scripts/sdk.sh", "test")

	s := start(t)
	config := s.submit("probe", folder(t, "testdata/probe")).Config.ID
	run(t, []string{"BERTH_URL=" + s.api, "BERTH_TOKEN=" + s.token(), "BERTH_TEST_CONFIG=" + config},
		"node", "--test", "../../sdk/typescript/dist/test/integration/")
}

// TestTypeScriptSamples holds what the API reference says about TypeScript to the
// client's types.
func TestTypeScriptSamples(t *testing.T) {
	t.Parallel()
	build := exec.CommandContext(t.Context(), "../../dev/scripts/sdk.sh", "build")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	spec, err := openapi3.NewLoader().LoadFromFile("../ctl-api/internal/apigen/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := reference.Document(spec, "", reference.Of("ctl-api"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatal(err)
	}
	source := strings.Builder{}
	source.WriteString("import type { Berth } from \"@berth/client\";\ndeclare const berth: Berth;\ndeclare const file: string;\n")
	operations := 0
	for _, path := range document.Paths.Map() {
		for _, op := range path.Operations() {
			var samples []struct{ Label, Source string }
			extension, err := json.Marshal(op.Extensions["x-codeSamples"])
			if err == nil {
				err = json.Unmarshal(extension, &samples)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, sample := range samples {
				if sample.Label == "TypeScript" {
					operations++
					fmt.Fprintf(&source, "export async function %s() {\n%s\nreturn data;\n}\n", op.OperationID, sample.Source)
				}
			}
		}
	}
	if operations < 50 {
		t.Fatalf("the reference has %d samples", operations)
	}
	dir := t.TempDir()
	client, err := filepath.Abs("../../sdk/typescript")
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "node_modules", "@berth"), 0o755)
	}
	if err == nil {
		err = os.Symlink(client, filepath.Join(dir, "node_modules", "@berth", "client"))
	}
	for name, content := range map[string]string{"package.json": `{"type": "module"}`, "samples.ts": source.String()} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), filepath.Join(client, "node_modules", ".bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck",
		"--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "samples.ts")
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// allPassed is the end of what `node --test` prints when something ran and all
// of it passed.
var allPassed = regexp.MustCompile(`(?m)^# pass [1-9][0-9]*\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0$`)

func run(t *testing.T, env []string, command string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(os.Environ(), env...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil || !allPassed.Match(out) {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(command), args, err, out)
	}
	t.Logf("%s %v: %s", filepath.Base(command), args, time.Since(began).Round(time.Second/10))
}

// TestGoClient uses pkg/berth as a program of somebody else would.
func TestGoClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	client, err := berth.New(berth.Options{URL: s.api, Token: s.token(), Transport: s.http.Transport})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()

	config, err := client.AwaitConfig(ctx, s.submit("probe", s.probeFolder()).Config.ID)
	if err != nil || config.State != ctlapi.ConfigStateReleased || config.Release == nil {
		t.Fatalf("config: got %+v, %v", config, err)
	}

	key := &ctlapi.CreateAppParams{IdempotencyKey: new("once")}
	first, err := client.CreateAppWithResponse(ctx, key, ctlapi.AppRequest{Name: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.CreateAppWithResponse(ctx, key, ctlapi.AppRequest{Name: "hello"})
	if err != nil || again.JSON201.ID != first.JSON201.ID {
		t.Errorf("the same key again: got %+v, %v", again, err)
	}
	if _, err := client.CreateAppWithResponse(ctx, nil, ctlapi.AppRequest{Name: "hello"}); berth.CodeOf(err) != "already_exists" {
		t.Errorf("another key: got %v", err)
	}

	var names []string
	for app, err := range client.Apps(ctx, ctlapi.ListAppsParams{Limit: new(1)}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, app.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"hello", "probe"}) {
		t.Errorf("apps: got %v", names)
	}

	var problem *berth.Problem
	if _, err := client.GetInstallWithResponse(ctx, "nowhere"); !errors.As(err, &problem) || problem.Status != 404 || problem.RequestID == "" {
		t.Errorf("what is not there: got %#v", err)
	}

	in := &install{system: s, name: "go", namespace: "probe-" + suffix()}
	made, err := client.CreateInstallWithResponse(ctx, nil, ctlapi.InstallRequest{
		Name: in.name, App: "probe", Customer: "go", CreateCustomer: true, Stack: new(s.stackKind()),
		Inputs: &ctlapi.InputValues{"canary": "x"}, Provision: true, ApproveAll: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.deployment != nil {
		s.handOverOnCluster(in, "--engines", "process")
	}
	// The control plane dies while the client waits, and comes back.
	killed := false
	w, err := client.AwaitWorkflow(ctx, *made.JSON201.WorkflowID, func(*ctlapi.Workflow) bool {
		if !killed {
			killed = true
			s.crash("ctl-api")
		}
		return false
	})
	if err != nil || w.State != ctlapi.WorkflowStateSucceeded || !killed {
		t.Errorf("provision, with a kill (%t): got %+v, %v", killed, w, err)
	}
}
