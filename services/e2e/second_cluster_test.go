package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// secondCluster is a control plane of its own on this machine, next to the cluster
// of KUBECONFIG: etcd and an API server, on loopback. It has no node, so no pod runs
// there; all other objects are real ones.
type secondCluster struct {
	t        *testing.T
	dir      string
	bin      string
	port     int // of the API server; etcd has the next two
	token    string
	accounts *ecdsa.PrivateKey // signs the tokens of service accounts
	ca       []byte            // PEM
	client   *http.Client
	running  []*exec.Cmd
}

// controlPlaneTimeout is how long a control plane may take to come up on a machine
// that is busy with other tests.
const controlPlaneTimeout = 90 * time.Second

// newSecondCluster starts one, and ends it after the test.
func newSecondCluster(t *testing.T) *secondCluster {
	t.Helper()
	server, err := exec.LookPath("kube-apiserver")
	if err != nil {
		t.Skip("no second cluster: kube-apiserver and etcd are not next to KUBECTL")
	}
	// Next to the caller's folder, whose path may be longer than etcd's socket allows.
	c := &secondCluster{t: t, dir: t.TempDir(), bin: filepath.Dir(server), port: freePorts(t), token: suffix() + suffix() + suffix() + suffix()}
	c.accounts = c.key("accounts")
	c.certificate()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca)
	c.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	if err := os.WriteFile(c.file("tokens.csv"), []byte(c.token+",admin,admin,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	c.launch("first")
	return c
}

func (c *secondCluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *secondCluster) address() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port) }

// launch starts etcd and the API server on the data called name.
func (c *secondCluster) launch(name string) {
	c.t.Helper()
	clients, peers := fmt.Sprintf("http://127.0.0.1:%d", c.port+1), fmt.Sprintf("http://127.0.0.1:%d", c.port+2)
	c.begin("etcd", "--data-dir", c.file(name), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers)
	c.begin("kube-apiserver", "--etcd-servers", clients, "--cert-dir", c.dir,
		"--tls-cert-file", c.file("server.crt"), "--tls-private-key-file", c.file("server.key"),
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none",
		"--secure-port", fmt.Sprint(c.port), "--service-cluster-ip-range", "10.97.0.0/24",
		"--token-auth-file", c.file("tokens.csv"), "--authorization-mode", "RBAC", "--profiling=false", "--v", "1",
		"--service-account-issuer", "https://second.example.com", "--api-audiences", "https://second.example.com",
		"--service-account-key-file", c.file("accounts.key"), "--service-account-signing-key-file", c.file("accounts.key"))
	deadline := time.Now().Add(controlPlaneTimeout)
	for c.call(http.MethodGet, "/readyz", nil, nil) != nil || c.uid() == "" {
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(c.file("kube-apiserver.log"))
			c.t.Fatalf("the second cluster is not ready within %s:\n%s", controlPlaneTimeout, tail(string(log), 20))
		}
		time.Sleep(100 * time.Millisecond) // its readiness can only be asked for
	}
}

func (c *secondCluster) begin(name string, args ...string) {
	c.t.Helper()
	log, err := os.OpenFile(c.file(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=400MiB")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.running = append(c.running, cmd)
}

// stop ends it. Nothing of it is kept, so nobody waits for it to be polite.
func (c *secondCluster) stop() {
	for _, cmd := range c.running {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
	c.running = nil
}

// replace puts another cluster in its place: the same address, certificate and
// token, and none of the objects.
func (c *secondCluster) replace() {
	c.t.Helper()
	before := c.uid()
	c.stop()
	c.launch("other")
	if after := c.uid(); after == before {
		c.t.Fatalf("the cluster is the same one: %s", after)
	}
}

// uid is that of its kube-system, "" while that is not there.
func (c *secondCluster) uid() string {
	var namespace struct{ Metadata struct{ UID string } }
	if c.call(http.MethodGet, "/api/v1/namespaces/kube-system", nil, &namespace) != nil {
		return ""
	}
	return namespace.Metadata.UID
}

// call asks the API server as its administrator.
func (c *secondCluster) call(method, path string, body, out any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.address()+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, said)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(said, out)
}

// names lists the objects of a kind (configmaps, secrets) in a namespace.
func (c *secondCluster) names(kind, namespace string) (names []string) {
	c.t.Helper()
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := c.call(http.MethodGet, "/api/v1/namespaces/"+namespace+"/"+kind, nil, &list); err != nil {
		c.t.Fatal(err)
	}
	for _, item := range list.Items {
		names = append(names, item.Metadata.Name)
	}
	return names
}

// tokenOf makes a token for a service account that is an administrator, which ends
// after life: one of the API server's own, signed once more with another end. The
// API server gives none for less than ten minutes.
func (c *secondCluster) tokenOf(life time.Duration) string {
	c.t.Helper()
	for _, object := range []struct {
		path string
		body any
	}{
		{"/api/v1/namespaces/default/serviceaccounts", map[string]any{"metadata": map[string]any{"name": "runner"}}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", map[string]any{
			"metadata": map[string]any{"name": "runner"}, "roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "default", "name": "runner"}},
		}},
	} {
		if err := c.call(http.MethodPost, object.path, object.body, nil); err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
			c.t.Fatal(err)
		}
	}
	var request struct{ Status struct{ Token string } }
	err := c.call(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/runner/token",
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{}}, &request)
	if err != nil {
		c.t.Fatal(err)
	}
	parts := strings.Split(request.Status.Token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		c.t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(raw, &claims); err != nil {
		c.t.Fatal(err)
	}
	now := time.Now()
	claims["exp"], claims["iat"], claims["nbf"] = now.Add(life).Unix(), now.Add(-time.Hour).Unix(), now.Add(-time.Hour).Unix()
	if raw, err = json.Marshal(claims); err != nil {
		c.t.Fatal(err)
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, c.accounts, sum[:])
	if err != nil {
		c.t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// kubeconfig leads to the cluster with a token, trusting an authority in PEM.
func (c *secondCluster) kubeconfig(authority []byte, token string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: west\ncontexts: [{name: west, context: {cluster: west, user: west}}]\n"+
		"clusters: [{name: west, cluster: {server: %q, certificate-authority-data: %s}}]\nusers: [{name: west, user: {token: %s}}]\n",
		c.address(), base64.StdEncoding.EncodeToString(authority), token)
}

func (c *secondCluster) key(name string) *ecdsa.PrivateKey {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(name+".key", "EC PRIVATE KEY", der)
	return key
}

// certificate makes that of the API server, which is its own authority.
func (c *secondCluster) certificate() {
	c.t.Helper()
	key := c.key("server")
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "second cluster"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	c.ca = c.write("server.crt", "CERTIFICATE", der)
}

func (c *secondCluster) write(name, kind string, der []byte) []byte {
	c.t.Helper()
	raw := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(c.file(name), raw, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return raw
}
