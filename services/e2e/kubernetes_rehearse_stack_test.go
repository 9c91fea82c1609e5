package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rehearses rehearses an app in the cluster of a stack: the report waits for the
// runner, which the printed commands start, and what needs no cloud is deployed there.
func (k *stack) rehearses(t *testing.T) {
	name := "r" + suffix()
	dir, namespace, runner := t.TempDir(), "rehearse-"+name, "berth-"+name
	for file, text := range map[string]string{
		"metadata.toml": "version = \"v2\"\n", "runner.toml": "runner_type = \"aws\"\n",
		"stack.toml":               "type = \"aws-cloudformation\"\nname = \"x\"\ndescription = \"x\"\n",
		"sandbox.toml":             "terraform_version = \">= 1.0.0\"\n[berth]\nlocal_source = \"sandbox\"\n",
		"sandbox/main.tf":          "resource \"aws_vpc\" \"main\" {}\n",
		"components/manifest.toml": "name = \"manifest\"\ntype = \"kubernetes_manifest\"\nnamespace = \"" + namespace + "\"\nmanifest = \"\"\"\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\ndata:\n  cluster: {{ .nuon.sandbox.outputs.cluster.name }}\n\"\"\"\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := (&shop{install: &install{system: k.system, name: name}, namespace: namespace}).on(t)
	t.Cleanup(func() {
		for _, one := range []string{runner, runner + "-relay", namespace} {
			_, _ = k.command("kubectl", "delete", "namespace", one, "--ignore-not-found", "--wait=false")
		}
	})
	file := filepath.Join(t.TempDir(), "report.json")
	ended := make(chan string, 1)
	go func() {
		out, code := k.system.berth("rehearse", dir, "--app", "elsewhere", "--name", name, "--stack", "kubernetes", "--report", file)
		ended <- fmt.Sprintf("exit code %d\n%s", code, out)
	}()
	in.eventually(time.Minute, "the install of the rehearsal", func() error {
		out, code := in.system.berth("installs", "show", name)
		if code != 0 {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
	both := strings.ReplaceAll(k.both, k.namespace, namespace)
	in.handOver(both, fmt.Sprintf(" --engines process --image-pull-policy Always --registry-node-port %d", nodePort()))
	var said string
	select {
	case said = <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the rehearsal did not end")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var r struct {
		rehearsed
		Cluster bool
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Lines {
		if want := map[string]string{"sandbox sandbox": "mocked", "component manifest": "real"}[l.Kind+" "+l.Name]; want != "" && want != l.Verdict {
			t.Errorf("%s %s is %s: %s, want %s", l.Kind, l.Name, l.Verdict, l.Why, want)
		}
	}
	if !r.Cluster || r.Totals["failed"] != 0 {
		t.Errorf("cluster %v, %v\n%s", r.Cluster, r.Totals, said)
	}
	if got := in.field("configmap/more", "{.metadata.name}"); got != "more" {
		t.Errorf("in the cluster is %q", got)
	}
}
