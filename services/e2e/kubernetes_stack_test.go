package e2e_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// vendorHost is the one name that the customer's proxy lets through. Nobody but
// the proxy can look it up.
const vendorHost = "control.berth.test"

// TestKubernetesStack is the way of a customer with a cluster behind a proxy
// that opens one host, and with an authority of his own: from the printed
// commands to a healthy app, a switch in the cluster, and a pod that is lost.
func TestKubernetesStack(t *testing.T) {
	t.Parallel()
	k, runner := newStack(t, shopFolder, " --engines process")
	in, s, port, proxy := k.install, k.system, k.port, k.proxy

	t.Run("the stack says where it is", func(t *testing.T) {
		var stack ctlapi.Stack
		s.get("/installs/"+in.name+"/stack", &stack)
		in.runner = stack.Runner.ID
		if stack.State != ctlapi.StackStateActive || !stack.Runner.Online || !bytes.Contains(stack.Outputs, []byte(`"namespace":"`+runner+`"`)) ||
			!bytes.Contains(stack.Outputs, []byte(`"cluster_version":"v1.`)) {
			t.Errorf("stack: %+v, outputs %s", stack, stack.Outputs)
		}
	})

	t.Run("pods answer, from the install's own registry", func(t *testing.T) {
		k := k.on(t)
		if said, err := k.answers("/healthz"); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		if got := k.field("deployment/web", "{.spec.template.spec.containers[0].image}"); !strings.HasPrefix(got, fmt.Sprintf("127.0.0.1:%d/web_image@sha256:", port)) {
			t.Errorf("the pods run %s", got)
		}
	})

	t.Run("a stranger in the network cannot read the images", func(t *testing.T) { k.on(t).attackRegistry(runner, port) })

	t.Run("everything went to one host", func(t *testing.T) {
		if hosts := proxy.seen(); !slices.Equal(hosts, []string{vendorHost + ":443"}) {
			t.Errorf("the proxy was asked for %v", hosts)
		}
	})

	t.Run("engines cannot read the agent's token", func(t *testing.T) {
		k := k.on(t)
		got, err := k.command("kubectl", "--namespace", runner, "exec", "deployment/berth-runner", "--container", "agent", "--",
			"stat", "--dereference", "--format", "%a %u", "/var/run/secrets/kubernetes.io/serviceaccount/token", "/run/berth/code/code", "/data/identity")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(got), "\n") {
			if line != "400 0" && line != "600 0" {
				t.Errorf("a secret of the agent has mode and owner %s", line)
			}
		}
	})

	t.Run("the switch of the cluster is obeyed", func(t *testing.T) {
		k := k.on(t)
		database := s.database()
		position := func(mode string) {
			t.Helper()
			patch := fmt.Sprintf(`{"data":{"mode":%q,"reason":"audit"}}`, mode)
			if _, err := k.command("kubectl", "--namespace", runner, "patch", "configmap", "berth-runner-switch", "--type", "merge", "--patch", patch); err != nil {
				t.Fatal(err)
			}
			k.eventually(goOnTimeout, "the switch stands at "+mode, func() error {
				said, err := k.command("kubectl", "--namespace", runner, "exec", "deployment/berth-runner", "--container", "agent", "--", "berth-runner", "status")
				if err == nil && !strings.Contains(said, mode) {
					err = fmt.Errorf("status says:\n%s", said)
				}
				return err
			})
		}
		position("pause")
		w := in.in(t).deploy(false, "extras")
		count := func(query string, args ...any) (n int) {
			t.Helper()
			if err := database.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		k.eventually(goOnTimeout, "the plan waits for the runner", func() error {
			if count(`select count(*) from berth.runner_jobs where workflow_id = $1 and state = 'queued'`, w.ID) == 0 {
				return errors.New("no job is queued")
			}
			return nil
		})
		resumed := time.Now()
		position("run")
		if got := in.in(t).finished(w.ID, time.Minute); got.State != "succeeded" {
			t.Errorf("after the pause: %s", k.explain(got))
		}
		if n := count(`select count(*) from berth.runner_jobs where workflow_id = $1 and leased_at < $2`, w.ID, resumed); n != 0 {
			t.Errorf("a paused runner took %d jobs", n)
		}
	})

	t.Run("an app is rehearsed in such a cluster", k.rehearses)

	t.Run("a runner that lost its pod goes on", func(t *testing.T) {
		k := k.on(t)
		var before ctlapi.Runner
		k.get("/runners/"+in.runner, &before)
		if _, err := k.command("kubectl", "--namespace", runner, "delete", "pod", "--selector", "app=berth-runner", "--force", "--grace-period", "0"); err != nil {
			t.Fatal(err)
		}
		if _, err := k.command("kubectl", "--namespace", runner, "wait", "--for", "condition=Ready", "pod", "--selector", "app=berth-runner", "--timeout", "90s"); err != nil {
			t.Fatal(err)
		}
		w := in.in(t).deploy(false, "web")
		got := in.in(t).finished(w.ID, time.Minute)
		if c := step(got, "component/web").Change; got.State != "succeeded" || c == nil || c.State != "no_change" {
			t.Errorf("deploying again: %s", k.explain(got))
		}
	})

	t.Run("deprovision leaves what the customer applied", func(t *testing.T) {
		in := in.in(t)
		var w ctlapi.Workflow
		in.post("/installs/"+in.name+"/workflows", map[string]any{"kind": "deprovision", "approve_all": true, "confirm": in.name}, &w)
		if got := in.finished(w.ID, teardownTimeout); got.State != "succeeded" {
			t.Fatalf("deprovision: %s", in.explain(got))
		}
		k := k.on(t)
		if left := k.kubectl("get", "deployments,services,poddisruptionbudgets,jobs", "--output", "name"); strings.TrimSpace(left) != "" {
			t.Errorf("left in the namespace:\n%s", left)
		}
	})
}

// attackRegistry asks for an image of the install wherever a registry may be
// found. The test is on the node, so its loopback is the one way that is open.
func (k *shop) attackRegistry(runner string, port int) {
	k.t.Helper()
	_, image, _ := strings.Cut(k.field("deployment/web", "{.spec.template.spec.containers[0].image}"), "/")
	repository, digest, _ := strings.Cut(image, "@")
	get := func(address string) (status int, err error) {
		resp, err := http.Get("http://" + address + "/v2/" + repository + "/manifests/" + digest)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := get(fmt.Sprintf("127.0.0.1:%d", port)); err != nil || status != http.StatusOK {
		k.t.Errorf("the node's own kubelet gets %d, %v, so this test proves nothing", status, err)
	}
	if status, err := get(fmt.Sprintf("%s:%d", k.nodeAddress(), port)); !errors.Is(err, syscall.ECONNREFUSED) {
		k.t.Errorf("at the node's address in the network: %d, %v, want the connection refused", status, err)
	}
	for what, path := range map[string][]string{
		"the Service": {"service", "berth-registry", "--output", "jsonpath={.spec.clusterIP}"},
		"the pod":     {"pod", "--selector", "app=berth-runner", "--output", "jsonpath={.items[0].status.podIP}"},
	} {
		ip, err := k.command("kubectl", append([]string{"--namespace", runner, "get"}, path...)...)
		if err != nil {
			k.t.Fatal(err)
		}
		if status, err := get(strings.TrimSpace(ip) + ":5000"); err != nil || status != http.StatusUnauthorized {
			k.t.Errorf("%s without the token answers %d, %v, want %d", what, status, err, http.StatusUnauthorized)
		}
	}
}

// stack is a shop whose runner is in the cluster.
type stack struct {
	*shop
	proxy *proxy
	port  int    // where kubelets pull
	both  string // flags of both commands of the customer
}

// apply makes a code and does what it comes with: what is printed is run as it
// is, with what it says to add.
func (k *stack) apply(both, manifest string) string {
	k.t.Helper()
	return k.handOver(k.both+both, fmt.Sprintf(" --image-pull-policy Always --registry-node-port %d", k.port)+manifest)
}

// newStack goes the customer's way with an app, and brings it up. flags are
// further ones of the manifest.
func newStack(t *testing.T, app func(*testing.T) string, flags string) (k *stack, runner string) {
	t.Helper()
	return newStackWith(t, app, func(*stack) (string, string) { return "", flags })
}

// newStackWith is newStack with flags that the stack decides: those of both
// commands of the customer, and those of the manifest alone.
func newStackWith(t *testing.T, app func(*testing.T) string, flags func(*stack) (both, manifest string)) (k *stack, runner string) {
	t.Helper()
	if os.Getenv("KUBECONFIG") == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	image := runnerImage(t)
	s := startOnCluster(t, "BERTH_PUBLIC_URL=https://"+vendorHost, "BERTH_RUNNER_IMAGE="+image)
	node := s.nodeAddress()
	cert, key, authority := certificates(t)
	proxy := startProxy(t, node, s.front(node, cert, key))

	folder := app(t)
	s.sync("shop", folder)
	in := &install{system: s, name: "k" + suffix(), app: folder}
	k = &stack{shop: &shop{install: in, namespace: "shop-" + in.name}, proxy: proxy, port: nodePort()}
	runner = "berth-" + in.name
	t.Cleanup(func() {
		if t.Failed() {
			k.explainPods(runner)
		}
		for _, namespace := range []string{runner, runner + "-relay", k.namespace} {
			_, _ = k.command("kubectl", "delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
		}
	})
	s.must("installs", "create", in.name, "--app", "shop", "--stack", "kubernetes", "--approve-all")

	k.both = fmt.Sprintf(" --proxy %s --ca %s --namespaces %s", proxy.url, authority, k.namespace)
	both, manifest := flags(k)
	said := k.apply(both, manifest)
	for _, line := range []string{"ok    proxy", "ok    runner-api", "ok    log-ingest", "ok    registry", "ok    clock", "ok    rights", "ok    storage"} {
		if !strings.Contains(said, line) {
			t.Errorf("preflight does not say %q:\n%s", line, said)
		}
	}

	var made ctlapi.Install
	s.get("/installs/"+in.name, &made)
	in.id = made.ID
	if w := in.finished(*made.WorkflowID, 2*rolloutTimeout); w.State != "succeeded" {
		t.Fatalf("provision: %s: %s", w.State, in.explain(w))
	}
	return k, runner
}

// handOver runs what is printed for the customer as it is, with flags for both
// commands, and with those of the manifest alone. It returns what is said.
func (k *shop) handOver(both, manifest string) string {
	k.t.Helper()
	script := k.must("installs", "stack", k.name, "--new")
	script = strings.Replace(script, "\nberth-runner preflight", "\nberth-runner preflight"+both, 1)
	script = strings.Replace(script, "\nberth-runner manifest", "\nberth-runner manifest"+manifest+both, 1)
	said, err := k.customer(script)
	if err != nil {
		k.t.Fatalf("the printed commands: %v\n%s", err, said)
	}
	return said
}

// nodePort is one for the registry of an install, which others are unlikely to
// have.
func nodePort() int {
	random := make([]byte, 1)
	_, _ = rand.Read(random) // never fails
	return 30600 + int(random[0])
}

// runnerImage makes the image of the runner that is tested.
func runnerImage(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join("..", "..", "dev", "scripts", "runner-image.sh"))
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("runner-image.sh: %v\n%s", err, errOut.String())
	}
	return strings.TrimSpace(string(out))
}

// nodeAddress is where pods reach this machine.
func (s *system) nodeAddress() string {
	s.t.Helper()
	k := &shop{install: &install{system: s}}
	server, err := k.command("kubectl", "config", "view", "--minify", "--output", "jsonpath={.clusters[0].cluster.server}")
	if err != nil {
		s.t.Fatal(err)
	}
	u, err := url.Parse(server)
	if err != nil {
		s.t.Fatal(err)
	}
	return u.Hostname()
}

// front starts `berth front` and returns its address.
func (s *system) front(host, cert, key string) string {
	s.t.Helper()
	address := freeAddress(s.t, host)
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(s.bin, "berth"), "front", "--listen", address, "--tls-cert", cert, "--tls-key", key)
	cmd.Env, cmd.Stderr = s.env, &log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("berth front ended with %v:\n%s", err, log.String())
		}
	})
	s.eventually(goOnTimeout, "the front listens", func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return address
}

// customer runs commands as the customer does: in a folder of his, with
// berth-runner and kubectl, and without anything of the vendor's.
func (k *shop) customer(script string) (string, error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cliTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail")
	cmd.Dir, cmd.Stdin = k.t.TempDir(), strings.NewReader(script)
	cmd.Env = []string{"PATH=" + k.bin + ":" + os.Getenv("PATH"), "KUBECONFIG=" + os.Getenv("KUBECONFIG"), "HOME=" + cmd.Dir}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// explainPods shows what became of the runner.
func (k *shop) explainPods(namespace string) {
	for _, args := range [][]string{
		{"get", "pods", "--all-namespaces", "--output", "wide"},
		{"get", "events", "--namespace", namespace},
		{"logs", "--namespace", namespace, "deployment/berth-runner", "--all-containers", "--tail", "40"},
	} {
		out, err := k.command("kubectl", args...)
		k.t.Logf("kubectl %v: %v\n%s", args, err, tail(out, 40))
	}
}

// certificates makes an authority and a certificate of the vendor's host.
func certificates(t *testing.T) (cert, key, authority string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sign := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = own
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, own.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, own
	}
	until := time.Now().Add(time.Hour)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the customer's authority"}, NotAfter: until, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	rootDER, rootKey := sign(root, root, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{vendorHost}, NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	leafDER, leafKey := sign(leaf, root, rootKey)
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return write("cert.pem", "CERTIFICATE", leafDER), write("key.pem", "PRIVATE KEY", keyDER), write("ca.pem", "CERTIFICATE", rootDER)
}

// proxy is a customer's way out: CONNECT to one host and nothing else.
type proxy struct {
	url string

	mu    sync.Mutex
	asked map[string]bool
}

// startProxy starts a proxy on the node's address that leads vendorHost to target.
func startProxy(t *testing.T, node, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(node, "0"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "http://" + listener.Addr().String(), asked: map[string]bool{}}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked[r.Host] = true
		p.mu.Unlock()
		if r.Method != http.MethodConnect || r.Host != vendorHost+":443" {
			http.Error(w, "not allowed", http.StatusForbidden)
			return
		}
		there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", target)
		if err != nil {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		defer func() { _ = there.Close() }()
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = here.Close() }()
		_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			_, _ = io.Copy(there, buffered)
			_ = there.Close()
		}()
		_, _ = io.Copy(here, there)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

// seen lists the hosts that the proxy was asked for.
func (p *proxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	hosts := make([]string, 0, len(p.asked))
	for host := range p.asked {
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	return hosts
}
