package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/order"
)

func guardedDir(t *testing.T) datadir.Dir {
	t.Helper()
	dir, err := datadir.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Make(0); err != nil {
		t.Fatal(err)
	}
	return dir
}

// guardrailsOf runs the command line on a data directory.
func guardrailsOf(t *testing.T, dir datadir.Dir, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetArgs(append([]string{"--data", dir.Path()}, args...))
	code = execute(t.Context(), root, &out, &errs)
	return out.String(), errs.String(), code
}

func TestGuardrailsList(t *testing.T) {
	t.Parallel()
	dir := guardedDir(t)
	if err := datadir.Write(filepath.Join(dir.Guardrails(), "quiet-hours.rego"), []byte("package berth\n")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"guardrails", "set", "cluster-scoped", "--answer", "warn", "--for", "2h", "--reason", "the platform team looks"},
		{"guardrails", "set", "host-path", "--answer", "deny", "--component", "web", "--reason", "no"},
		{"guardrails", "allow-deprovision", "--for", "1h", "--reason", "we move"},
	} {
		if _, errs, code := guardrailsOf(t, dir, args...); code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
	}
	out, errs, code := guardrailsOf(t, dir, "guardrails", "list", "--output", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var shown shownGuardrails
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	answers := map[string]policy.Answer{}
	for _, g := range shown.Guardrails {
		answers[g.Name] = g.Answer
	}
	if len(shown.Guardrails) != len(guardrail.Standards)+1 || answers["cluster-scoped"] != policy.Warn || answers["host-path"] != policy.Ask || answers["data-object"] != policy.Ask || shown.Deprovision == nil || len(shown.Problems) != 0 {
		t.Errorf("got %+v", shown)
	}
	table, _, _ := guardrailsOf(t, dir, "guardrails", "list")
	for _, want := range []string{"quiet-hours", "guardrails/quiet-hours.rego", "[deny of web: no]", "the platform team looks", "teardowns may remove what holds data until"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	if out, errs, code := guardrailsOf(t, dir, "guardrails", "unset", "cluster-scoped"); code != 0 || !strings.Contains(out, "as it says itself") {
		t.Errorf("unset: %s %s", out, errs)
	}
	if _, errs, code := guardrailsOf(t, dir, "guardrails", "forbid-deprovision"); code != 0 {
		t.Error(errs)
	}
	if table, _, _ = guardrailsOf(t, dir, "guardrails", "list"); strings.Contains(table, "platform team") || strings.Contains(table, "teardowns may") {
		t.Errorf("what was taken back is still there:\n%s", table)
	}
}

func TestGuardrailsMistakes(t *testing.T) {
	t.Parallel()
	dir := guardedDir(t)
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no such guardrail":   {[]string{"set", "hostpath", "--answer", "warn", "--reason", "x"}, "no guardrail \"hostpath\""},
		"no such answer":      {[]string{"set", "host-path", "--answer", "maybe", "--reason", "x"}, "none of allow, warn, ask and deny"},
		"no reason":           {[]string{"set", "host-path", "--answer", "warn"}, "--reason is needed"},
		"a permit for good":   {[]string{"allow-deprovision", "--reason", "x"}, "--for is a time"},
		"no id of a change":   {[]string{"explain", "../trust"}, "the id of one change"},
		"an unknown change":   {[]string{"explain", "chg_01jd2x7q9zr8w3v5k6m4n0tgha"}, "no plan of change"},
		"a format of nobody":  {[]string{"list", "--output", "xml"}, "not table or json"},
		"a file that is none": {[]string{"test", "/nonexistent"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, errs, code := guardrailsOf(t, dir, append([]string{"guardrails"}, tc.args...)...); code == 0 || !strings.Contains(errs, tc.says) {
				t.Errorf("%d: %s, want one that says %q", code, errs, tc.says)
			}
		})
	}
}

func TestGuardrailsExplain(t *testing.T) {
	t.Parallel()
	dir := guardedDir(t)
	const change = "chg_01jd2x7q9zr8w3v5k6m4n0tgha"
	record := order.Record{ChangeID: change, PlannedAt: time.Now(), Judgement: &policy.Judgement{Answer: policy.Ask, Guardrails: []policy.Verdict{
		{Policy: "host-path", Document: "Deployment shop/web", Component: "web", Result: policy.Fail, On: policy.Ask, Message: "mounts directories of the node: /\x1b[2J"},
		{Policy: "foreign-image", Document: "Deployment shop/web", Component: "web", Result: policy.Pass},
	}}}
	if err := datadir.WriteJSON(dir.Plan(change), record); err != nil {
		t.Fatal(err)
	}
	out, errs, code := guardrailsOf(t, dir, "guardrails", "explain", change)
	for _, want := range []string{change, "host-path (ask)", "mounts directories of the node", "kind: ValidatingPolicy", "berth-runner guardrails set host-path --answer warn"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%d %s: lacks %q:\n%s", code, errs, want, out)
		}
	}
	if strings.Contains(out, "\x1b") || strings.Contains(out, "foreign-image") {
		t.Errorf("it shows what nobody asked for:\n%q", out)
	}
}

func TestStatusNamesGuardrails(t *testing.T) {
	t.Parallel()
	dir := guardedDir(t)
	state := guards.State{Guardrails: 17, Own: 1, Problems: []string{"guardrails/half.rego:3: it does not load"}}
	if err := datadir.WriteJSON(dir.GuardrailsState(), state); err != nil {
		t.Fatal(err)
	}
	out, errs, code := guardrailsOf(t, dir, "status")
	if code != 0 || !strings.Contains(out, "17, 1 of them your own files") || !strings.Contains(out, "IN DOUBT, so that every change asks: guardrails/half.rego:3") {
		t.Errorf("%d %s:\n%s", code, errs, out)
	}
}

// What the files of a chart or a plan would be answered is known before anything is sent.
func TestGuardrailsTest(t *testing.T) {
	if _, err := os.Stat("../../../.bin/berth-policy"); err != nil {
		t.Skip("there is no berth-policy: run `make build`")
	}
	t.Setenv("BERTH_ENGINE", absolute(t, "../../../.bin/berth-engine"))
	dir, files := guardedDir(t), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(files, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := filepath.Join(dir.Guardrails(), "no-load-balancer.rego")
	if err := os.WriteFile(own, []byte("package berth\ndeny contains \"it opens a load balancer\" if \"load_balancer\" in [e.kind | some e in input.footprint.exposed]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, text, says string
		code             int
	}{
		{"plain.yaml", "# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n---\n", "1 documents: allow", 0},
		{"node.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec: {hostNetwork: true, containers: []}\n", "ask: Pod shop/a fail: host-namespace", 0},
		{"own.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: berth-runner-switch, namespace: shop}\n", "deny: ConfigMap shop/berth-runner-switch fail: runner-objects", exitFailed},
		{"plan.json", `{"format_version": "1.2", "resource_changes": [{"address": "aws_s3_bucket.a", "type": "aws_s3_bucket", "mode": "managed", "change": {"actions": ["delete"]}}]}`, "ask: plan plan.json fail: data-resource", 0},
		{"open.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n", "deny: footprint of the plan fail: no-load-balancer", exitFailed},
		{"text.json", `{"a": 1}`, "", exitFailed},
	} {
		out, errs, code := guardrailsOf(t, dir, "guardrails", "test", write(tc.name, tc.text))
		if code != tc.code || !strings.Contains(out, tc.says) {
			t.Errorf("%s: %d %s\n%s", tc.name, code, errs, out)
		}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
