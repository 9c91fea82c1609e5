package e2e_test

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// deployment is a control plane in a cluster (make deploy) that tests are given
// in place of processes. BERTH_E2E_DEPLOYMENT names its folder of keys, KUBECONFIG
// the cluster, BERTH_DEPLOY_NAMESPACE (default: berth) where it is there. Only
// the tests of deployed.txt run on it.
type deployment struct {
	dir  string // what make deploy keeps
	url  string // of its front
	host string // of its front, as pods see it too
	ca   string // file of the authority of its front
}

// given is the deployment to test, nil when tests start processes.
func given(t *testing.T) *deployment {
	t.Helper()
	dir := os.Getenv("BERTH_E2E_DEPLOYMENT")
	if dir == "" {
		return nil
	}
	if !deployed(t, t.Name()) {
		t.Fatalf("%s is not in deployed.txt, and BERTH_E2E_DEPLOYMENT is set", t.Name())
	}
	address, err := os.ReadFile(filepath.Join(dir, "url"))
	if err != nil {
		t.Fatal(err)
	}
	d := &deployment{dir: dir, url: strings.TrimSpace(string(address)), ca: filepath.Join(dir, "tls.crt")}
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	d.host = u.Hostname()
	return d
}

// deployed says whether a test is one of deployed.txt.
func deployed(t *testing.T, name string) bool {
	t.Helper()
	for _, each := range deployedTests(t) {
		if each == name {
			return true
		}
	}
	return false
}

// deployedTests are those of deployed.txt.
func deployedTests(t *testing.T) []string {
	t.Helper()
	list, err := os.Open("deployed.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = list.Close() }()
	var names []string
	for lines := bufio.NewScanner(list); lines.Scan(); {
		if name, _, _ := strings.Cut(lines.Text(), " "); name != "" && name != "#" {
			names = append(names, name)
		}
	}
	return names
}

// TestDeployedTestsExist keeps deployed.txt right: a name that is no test would
// run nothing and be green.
func TestDeployedTestsExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	names := deployedTests(t)
	for i, name := range names {
		if !strings.Contains(source.String(), "\nfunc "+name+"(t *testing.T) {\n") {
			t.Errorf("deployed.txt has %s, which is no test here", name)
		}
		if i > 0 && names[i-1] >= name {
			t.Errorf("deployed.txt: %s stands behind %s", name, names[i-1])
		}
	}
	if len(names) == 0 {
		t.Error("deployed.txt names no test")
	}
}

// org makes an org in the deployment, with an admin whose command line logs in
// as it would from anywhere.
func (d *deployment) org(t *testing.T, extraEnv []string) *system {
	t.Helper()
	for _, setting := range extraEnv {
		if !strings.HasPrefix(setting, "KUBECONFIG=") {
			t.Fatalf("%s sets %s, which a deployment cannot be given", t.Name(), setting)
		}
	}
	authority, err := os.ReadFile(d.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatalf("%s has no certificate", d.ca)
	}
	dir := home(t)
	s := &system{
		t: t, dir: dir, bin: executables(t), api: d.url + "/api", logs: d.url, deployment: d,
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
	}
	s.env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "SSL_CERT_FILE="+d.ca,
		"BERTH_CONTEXT=", "BERTH_URL=", "BERTH_TOKEN=", "NO_COLOR=1")
	token := s.inBerth("exec", "deploy/ctl-api", "-c", "ctl-api", "--",
		"/usr/local/bin/berth-ctl-api", "bootstrap", "--org", "e2e-"+suffix(), "--token-file", "-")
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("context", "add", "deployment", "--url", s.api, "--token-file", file)
	t.Cleanup(func() {
		if t.Failed() {
			s.t.Logf("pods:\n%s", s.inBerth("get", "pods", "--output", "wide"))
		}
	})
	return s
}

// inBerth runs kubectl in the namespace of the deployment.
func (s *system) inBerth(args ...string) string {
	s.t.Helper()
	k := &shop{install: &install{system: s}}
	out, err := k.command("kubectl", append([]string{"--namespace", cmp.Or(os.Getenv("BERTH_DEPLOY_NAMESPACE"), "berth")}, args...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// crash ends a service as an accident does: its process, or one of its pods.
func (s *system) crash(service string) {
	s.t.Helper()
	if s.deployment == nil {
		p, ok := s.part(service)
		if !ok {
			s.t.Fatalf("%s does not run", service)
		}
		s.signal(p.PID, syscall.SIGKILL)
		return
	}
	pod := s.inBerth("get", "pods", "--selector", "app.kubernetes.io/name="+service, "--field-selector", "status.phase=Running",
		"--output", "jsonpath={.items[0].metadata.name}")
	s.inBerth("delete", "pod", pod, "--force", "--grace-period", "0", "--wait=false")
}

// imageFromDeployment has an app take its image where builder's pod can read it:
// `dev/scripts/deploy.sh registry` serves the development registry there.
func (s *system) imageFromDeployment(app string) {
	s.t.Helper()
	const port = "16453"
	edit(s.t, filepath.Join(app, "components", "web_image.toml"), "127.0.0.1:16452", s.host+":"+port)
}

// stackKind is that of installs here.
func (s *system) stackKind() ctlapi.StackKind {
	if s.deployment != nil {
		return ctlapi.StackKindKubernetes
	}
	return ctlapi.StackKindLocal
}

// handOverOnCluster goes the customer's way with an install: the runner is in
// the cluster and knows the front alone. Flags are those of the manifest.
func (s *system) handOverOnCluster(in *install, flags ...string) {
	s.t.Helper()
	k := &shop{install: in, namespace: in.namespace}
	runner := "berth-" + in.namespace
	s.t.Cleanup(func() {
		if s.t.Failed() {
			k.explainPods(runner)
		}
		for _, each := range []string{runner, runner + "-relay", in.namespace} {
			_, _ = k.command("kubectl", "delete", "namespace", each, "--ignore-not-found", "--wait=false")
		}
	})
	manifest := strings.Join(append([]string{"", "--registry-node-port", strconv.Itoa(nodePort())}, flags...), " ")
	said := k.handOver(" --ca "+s.ca+" --namespace "+runner+" --namespaces "+in.namespace, manifest)
	k.onlyWarn(runner)
	for _, part := range []string{"runner-api", "log-ingest", "registry"} {
		if line := "ok    " + part + ": answers at " + s.url; !strings.Contains(said, line) {
			s.t.Errorf("preflight does not say %q:\n%s", line, said)
		}
	}
}

// onlyWarn has the customer's guardrails warn only: these tests are about something else, and
// nobody is there to agree to a teardown.
func (k *shop) onlyWarn(runner string) {
	k.t.Helper()
	answers := `answers.json={"only_warn": true, "reason": "a test of something else"}`
	if _, err := k.command("kubectl", "--namespace", runner, "create", "configmap", "berth-runner-guardrails", "--from-literal", answers); err != nil {
		k.t.Fatal(err)
	}
}

// enrolOnCluster is that, and waits until the install is provisioned.
func (s *system) enrolOnCluster(in *install, flags ...string) {
	s.t.Helper()
	s.handOverOnCluster(in, flags...)
	var made ctlapi.Install
	s.get("/installs/"+in.name, &made)
	in.id = made.ID
	if w := in.finished(*made.WorkflowID, rolloutTimeout); w.State != "succeeded" {
		s.t.Fatalf("provision of %s: %s: %s", in.name, w.State, in.explain(w))
	}
	var stack ctlapi.Stack
	s.get("/installs/"+in.name+"/stack", &stack)
	in.runner = stack.Runner.ID
}

// probeFolder is a copy of the probe app that does its work where it can.
func (s *system) probeFolder() string {
	s.t.Helper()
	app := folder(s.t, "testdata/probe")
	if s.deployment != nil {
		edit(s.t, filepath.Join(app, "sandbox.toml"), "{{ .nuon.install_stack.outputs.install_dir }}", "/tmp")
		// The runner's image has no flock.
		work := filepath.Join(app, "src", "work", "main.tf")
		edit(s.t, work, `      flock -n 9 || echo "DOUBLE ${var.name}" >>"${var.dir}/effects"`+"\n", "")
	}
	return app
}

// deployProbe is probe on a deployment. Its engines are processes, so that what
// they leave in the agent's container can be read.
func (s *system) deployProbe(in *install) {
	s.t.Helper()
	in.files = "/tmp/probe"
	in.namespace = "probe-" + suffix()
	s.sync("probe", in.app)
	s.post("/installs", map[string]any{
		"name": in.name, "app": "probe", "customer": in.name, "create_customer": true, "stack": s.stackKind(),
		"inputs": ctlapi.InputValues{"canary": canary}, "provision": true, "approve_all": true,
	}, nil)
	s.enrolOnCluster(in, "--engines", "process")
}

// readInCluster reads a file in the agent's container.
func (in *install) readInCluster(file string) ([]byte, error) {
	k := &shop{install: in}
	out, err := k.command("kubectl", "--namespace", "berth-"+in.namespace, "exec", "deployment/berth-runner", "--container", "agent", "--", "cat", file)
	return []byte(out), err
}
