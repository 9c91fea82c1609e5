package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubernetesRehearse rehearses an app for a cloud with a cluster at hand: its charts
// and manifests are really deployed, in a namespace of the install; what the cluster
// lacks is said line by line, and nothing is left at the end.
func TestKubernetesRehearse(t *testing.T) {
	t.Parallel()
	if os.Getenv("KUBECONFIG") == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	s := start(t, "KUBECONFIG="+os.Getenv("KUBECONFIG"))
	dir, name := t.TempDir(), "rehearse-"+suffix()
	for file, text := range map[string]string{
		"metadata.toml": "version = \"v2\"\n", "runner.toml": "runner_type = \"aws\"\n",
		"stack.toml":               "type = \"aws-cloudformation\"\nname = \"x\"\ndescription = \"x\"\n",
		"sandbox.toml":             "terraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"https://git.example.invalid/acme/eks.git\"\ndirectory = \".\"\nbranch = \"main\"\n",
		"components/chart.toml":    "name = \"chart\"\ntype = \"helm_chart\"\nchart_name = \"settings\"\nnamespace = \"" + name + "\"\n[berth]\nlocal_source = \"src\"\n[values]\ncluster = \"{{ .nuon.sandbox.outputs.cluster.name }}\"\n",
		"src/Chart.yaml":           "apiVersion: v2\nname: settings\nversion: 0.1.0\n",
		"src/templates/map.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  cluster: {{ .Values.cluster }}\n",
		"components/manifest.toml": "name = \"manifest\"\ntype = \"kubernetes_manifest\"\nnamespace = \"" + name + "\"\nmanifest = \"\"\"\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n\"\"\"\n",
		"components/nodes.toml":    "name = \"nodes\"\ntype = \"kubernetes_manifest\"\nnamespace = \"" + name + "\"\nmanifest = \"\"\"\napiVersion: karpenter.example.invalid/v1\nkind: NodePool\nmetadata:\n  name: {{ .nuon.sandbox.outputs.cluster.name }}\n\"\"\"\n",
		"actions/pods.toml":        "name = \"pods\"\n[[triggers]]\ntype = \"post-provision\"\n[[steps]]\nname = \"see\"\ninline_contents = \"kubectl get configmap --namespace " + name + " settings more\"\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k := &shop{install: &install{system: s, name: name}, namespace: name}
	t.Cleanup(func() {
		_, _ = k.command("kubectl", "delete", "namespace", name, "--ignore-not-found", "--wait=false")
	})
	file := filepath.Join(t.TempDir(), "report.json")
	out, code := s.berth("rehearse", dir, "--app", "cluster", "--name", name, "--report", file, "--remove")
	raw, err := os.ReadFile(file)
	if err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s", code, err, out)
	}
	var r struct {
		rehearsed
		Cluster bool
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"component chart": "real: ", "component manifest": "real: ", "action pods": "real: ",
		"component nodes": "not planned: the cluster has no kind NodePool of karpenter.example.invalid/v1: nothing installed its CRD",
	}
	for _, l := range r.Lines {
		if say, ok := want[l.Kind+" "+l.Name]; ok && say != l.Verdict+": "+l.Why {
			t.Errorf("%s %s is %s: %s, want %s", l.Kind, l.Name, l.Verdict, l.Why, say)
		}
	}
	if !r.Cluster {
		t.Error("the report knows of no cluster")
	}
	left, err := k.command("kubectl", "get", "configmap", "--namespace", name, "--ignore-not-found", "settings", "more", "--output", "name")
	if err != nil || strings.TrimSpace(left) != "" {
		t.Errorf("left in the cluster: %s (%v)", left, err)
	}
}
