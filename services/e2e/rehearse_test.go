package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var updateLines = flag.Bool("update-rehearsals", false, "write testdata/rehearse/lines.txt")

// anyVersion is the Terraform of the machine.
var anyVersion = regexp.MustCompile(`with Terraform \S+ instead`)

// rehearsed is what the test reads of a report.
type rehearsed struct {
	Totals map[string]int
	Lines  []struct{ Name, Kind, Verdict, Why, Plan string }
	Images []string
	Hosts  []struct{ Name string }
}

// TestRehearseApps rehearses apps in the public style, one below testdata/rehearse
// each, on one Berth without a cluster: none of their repositories, registries and
// clouds can be had. Every part has a line with its verdict and reason, the report is
// whole, and only the apps with a broken script and with
// mistakes in their folders fail.
func TestRehearseApps(t *testing.T) {
	t.Parallel()
	dir := home(t)
	none := filepath.Join(dir, "none.tfrc")
	if err := os.WriteFile(none, []byte("provider_installation {\n  filesystem_mirror {\n    path = \"/nonexistent\"\n  }\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := at(t, dir, executables(t), "TF_CLI_CONFIG_FILE="+none)
	s.begin()
	entries, err := os.ReadDir("testdata/rehearse")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := map[string]string{}
	slots := make(chan struct{}, 3) // of a machine with two cores
	var running sync.WaitGroup
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			lines := s.rehearseApp(t, e.Name())
			mu.Lock()
			defer mu.Unlock()
			got[e.Name()] = lines
		})
	}
	running.Go(func() {
		slots <- struct{}{}
		defer func() { <-slots }()
		s.rehearseSilent(t)
	})
	running.Wait()
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() {
			b.WriteString(got[e.Name()])
		}
	}
	const golden = "testdata/rehearse/lines.txt"
	if *updateLines {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("lines of the reports (-want +got):\n%s", diff)
	}
}

// rehearseSilent rehearses an app all of whose sources are on a host that takes
// connections and never says a word: it is asked once, whatever number of lines
// there are.
func (s *system) rehearseSilent(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return
	}
	var held []net.Conn
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, conn)
		}
	}()
	dir, host := t.TempDir(), l.Addr().String()
	files := map[string]string{
		"metadata.toml": "version = \"v2\"\nreadme = \"https://" + host + "/README.md\"\n", "runner.toml": "runner_type = \"aws\"\n",
		"stack.toml":             "type = \"aws-cloudformation\"\nname = \"x\"\ndescription = \"x\"\n",
		"sandbox.toml":           "terraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"https://" + host + "/sandbox.git\"\ndirectory = \".\"\nbranch = \"main\"\n",
		"components/image.toml":  "name = \"image\"\ntype = \"container_image\"\n[public]\nimage_url = \"" + host + "/x\"\ntag = \"1\"\n",
		"components/chart.toml":  "name = \"chart\"\ntype = \"helm_chart\"\nchart_name = \"x\"\n[helm_repo]\nrepo_url = \"https://" + host + "/charts\"\nchart = \"x\"\nversion = \"1.0.0\"\n",
		"components/values.toml": "name = \"values\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"https://" + host + "/x.yaml\"\n",
		"components/module.toml": "name = \"module\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[berth]\nlocal_source = \"src\"\n",
		"src/main.tf":            "module \"x\" {\n  source = \"git::https://" + host + "/module.git\"\n}\n",
		"permissions/p.toml":     "type = \"provision\"\nname = \"p\"\ndescription = \"p\"\npermissions_boundary = \"https://" + host + "/p.json\"\n",
	}
	for i := range 8 {
		name := fmt.Sprintf("git%d", i)
		files["components/"+name+".toml"] = "name = \"" + name + "\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"https://" + host + "/" + name + ".git\"\ndirectory = \".\"\nbranch = \"main\"\n"
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Error(err)
			return
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Error(err)
			return
		}
	}
	file, began := filepath.Join(t.TempDir(), "silent.json"), time.Now()
	out, code := s.berth("rehearse", dir, "--app", "silent", "--name", "silent", "--report", file)
	took := time.Since(began)
	_ = l.Close()
	<-accepting
	for _, conn := range held {
		_ = conn.Close()
	}
	raw, err := os.ReadFile(file)
	var r rehearsed
	if err != nil || json.Unmarshal(raw, &r) != nil || code != 0 {
		t.Errorf("exit code %d, %v:\n%s", code, err, out)
		return
	}
	silent := 0
	for _, l := range r.Lines {
		if strings.Contains(l.Why, "does not answer") {
			silent++
		}
	}
	if want := 15; silent != want { // the sandbox, 12 components, the README and the role
		t.Errorf("%d lines say that the host does not answer, want %d:\n%+v", silent, want, r.Lines)
	}
	t.Logf("%d lines of a host that does not answer took %s", silent, took)
	if len(held) != 1 {
		t.Errorf("the host was asked %d times", len(held))
	}
}

// rehearseApp rehearses one app, checks its report and returns it in lines.
func (s *system) rehearseApp(t *testing.T, app string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), app+".json")
	out, code := s.berth("rehearse", filepath.Join("testdata/rehearse", app), "--name", app, "--report", file,
		"--source-map", "https://charts.example.invalid/mapped=testdata/rehearse-charts")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%s has no report:\n%s", app, out)
		return ""
	}
	var r rehearsed
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Error(err)
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d real, %d mocked, %d not planned, %d failed; exit code %d\n", app,
		r.Totals["real"], r.Totals["mocked"], r.Totals["not planned"], r.Totals["failed"], code)
	counted := map[string]int{}
	for _, l := range r.Lines {
		counted[l.Verdict]++
		fmt.Fprintf(&b, "  %s %s: %s: %s\n", l.Kind, l.Name, l.Verdict, anyVersion.ReplaceAllString(l.Why, "with Terraform N instead"))
		if strings.Contains(l.Plan, "not-for-the-report") {
			t.Errorf("%s: the plan of %s shows a secret:\n%s", app, l.Name, l.Plan)
		}
		if l.Kind == "component" && l.Verdict == "mocked" && !strings.Contains(l.Plan, "create ") {
			t.Errorf("%s: the plan of %s is\n%s", app, l.Name, l.Plan)
		}
	}
	for verdict, n := range counted {
		if r.Totals[verdict] != n {
			t.Errorf("%s: %d lines are %s, the report counts %d", app, n, verdict, r.Totals[verdict])
		}
	}
	if app == "gke" && (!slices.Contains(r.Images, "ghcr.example.invalid/acme/blog:2.1") || len(r.Hosts) < 3) {
		t.Errorf("images %v, hosts %v", r.Images, r.Hosts)
	}
	return b.String()
}
