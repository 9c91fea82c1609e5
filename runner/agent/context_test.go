package agent_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/cloudcluster/cloudtest"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// maker is the component that makes the cluster of the context "west".
const maker = "west-cluster"

// apiServer answers, over TLS, who the cluster is to those that have its token.
func apiServer(t *testing.T, uid, token string) (address, authority string) {
	t.Helper()
	return apiServerFor(t, uid, func(given string) bool { return given == token })
}

// apiServerFor is apiServer for any token that opens.
func apiServerFor(t *testing.T, uid string, opens func(token string) bool) (address, authority string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || !opens(token) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"kind": "Namespace", "metadata": {"name": "kube-system", "uid": %q}}`, uid)
	}))
	t.Cleanup(server.Close)
	return server.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func outputsOf(address, authority, token string) map[string]any {
	return map[string]any{"cluster": map[string]any{
		"endpoint": address, "certificate_authority_data": base64.StdEncoding.EncodeToString([]byte(authority)), "token": token,
	}}
}

func kubeconfigOf(address, authority, token string) []byte {
	return fmt.Appendf(nil, "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\nusers: [{name: u, user: {token: %s}}]\n",
		address, base64.StdEncoding.EncodeToString([]byte(authority)), token)
}

func inWest(s *jobspec.Spec) {
	asManifest(s)
	s.KubernetesManifest.Cluster = &jobspec.Cluster{Context: "west", Component: maker}
}

const (
	westToken = "t0ken-of-the-western-cluster"
	eastToken = "t0ken-of-the-eastern-cluster"
)

// A component of a named context goes to the cluster that another one makes, with
// what that one gave out; the sandbox's own kubeconfig stays out of it.
func TestJobsOfANamedContextReachItsCluster(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	address, authority := apiServer(t, "uid-west", westToken)
	r.outputs = outputsOf(address, authority, westToken)
	c := newChangeOn(t, r, withCluster, inWest)
	if !strings.HasPrefix(c.plan.Effect.Target, "cluster:") {
		t.Errorf("target = %q, want the cluster", c.plan.Effect.Target)
	}
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	if got := c.seen(job).Kubeconfig; !strings.Contains(got, westToken) || !strings.Contains(got, address) || strings.Contains(got, clusterToken) {
		t.Errorf("kubeconfig of the apply:\n%s", got)
	}
	log := strings.Join(c.plane.log(t, c.plane.streamOf(job)), "\n")
	if strings.Contains(log, westToken) || !strings.Contains(log, address) {
		t.Errorf("the log shows the token, or nothing:\n%s", log)
	}
}

// Of a cluster of a cloud the outputs have no credentials. The agent makes them by
// its own identity, for the address that the cloud gives, plan and apply each their
// own; and it renews them while the engine runs. They are in no log and no argument.
func TestTokenOfACloudIsMadeAndRenewed(t *testing.T) {
	r := newRunner(t, runnerapi.RunnerKindInstall)
	cloud := cloudtest.New(t)
	r.clouds, cloud.Life = cloud.Clouds(), 3*time.Second
	cloud.Server, cloud.Authority = apiServerFor(t, "uid-west", func(token string) bool { return strings.HasPrefix(token, "google-token-") })
	r.outputs = map[string]any{"cluster": map[string]any{"id": "projects/acme-prod/locations/europe-west1/clusters/west", "endpoint": cloud.Server}}
	c := newChangeOn(t, r, here, inWest)
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	got := c.seen(job)
	if len(got.Tokens) != 2 || got.Tokens[0] == got.Tokens[1] || got.TokenMode != "-rw-------" || got.Mode != "-rw-------" {
		t.Errorf("the apply saw the tokens %q, modes %s and %s", got.Tokens, got.TokenMode, got.Mode)
	}
	if strings.Contains(got.Kubeconfig, "google-token-") || !strings.Contains(got.Kubeconfig, cloud.Server) {
		t.Errorf("kubeconfig of the apply:\n%s", got.Kubeconfig)
	}
	log := strings.Join(c.plane.log(t, c.plane.streamOf(job)), "\n")
	if strings.Contains(log, "google-token-") || strings.Count(log, "token ") < 2 {
		t.Errorf("the log shows a token, or nothing:\n%s", log)
	}
}

// Outputs are the vendor's: an address that is not the cluster's gets no token, and
// nothing is started.
func TestAttackTokenOfACloudForAnotherAddress(t *testing.T) {
	r := newRunner(t, runnerapi.RunnerKindInstall)
	cloud := cloudtest.New(t)
	r.clouds, cloud.Server, cloud.Authority = cloud.Clouds(), "https://west.example.com", otherAuthority(t)
	asked := make(chan string, 100)
	vendor, _ := apiServerFor(t, "uid-vendor", func(token string) bool { asked <- token; return true })
	r.outputs = map[string]any{"cluster": map[string]any{"id": "projects/acme-prod/locations/europe-west1/clusters/west", "endpoint": vendor}}
	here(r)
	r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
	c := &change{runner: r, shape: inWest, resource: jobspec.Resource{ID: "res_01jd2x7q9zr8w3v5k6m4n0tgha", Kind: "component", Name: "web"}, id: "chg_01jd2x7q9zr8w3v5k6m4n0tgha"}
	c.artifact = jobspec.Artifact{Repository: "org/shop/api", Digest: "sha256:" + strings.Repeat("0", 64)}
	spec := c.spec(jobspec.OperationPlan)
	spec.State = r.sealed(map[string]any{})
	result := r.plane.result(t, r.plane.give(spec))
	if result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "no token goes there") || result.Reason != jobspec.ReasonNeedsChange {
		t.Errorf("result = %+v", result)
	}
	if len(asked) > 0 {
		t.Errorf("the vendor's address was asked with %q", <-asked)
	}
}

// What the customer gave for a context wins over what the vendor's code gives out.
func TestTheCustomersFileWins(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	west, westCA := apiServer(t, "uid-west", westToken)
	east, eastCA := apiServer(t, "uid-east", eastToken)
	r.outputs = outputsOf(west, westCA, westToken)
	giveContext(t, r.dir, "west", kubeconfigOf(east, eastCA, eastToken))
	c := newChangeOn(t, r, here, inWest)
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	if got := c.seen(job).Kubeconfig; !strings.Contains(got, eastToken) || strings.Contains(got, westToken) {
		t.Errorf("kubeconfig of the apply:\n%s", got)
	}
}

// The plan was of one cluster. When the context means another one by the time of
// the apply, nothing is done to that.
func TestAnOrderIsForTheClusterOfItsPlan(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	west, westCA := apiServer(t, "uid-west", westToken)
	east, eastCA := apiServer(t, "uid-east", eastToken)
	r.outputs = outputsOf(west, westCA, westToken)
	c := newChangeOn(t, r, here, inWest)
	giveContext(t, r.dir, "west", kubeconfigOf(east, eastCA, eastToken))
	result := c.plane.result(t, c.order(asItIs))
	if result.Outcome != jobspec.OutcomeRefused || len(result.Differs) != 1 || result.Differs[0].Field != "target" {
		t.Errorf("result = %+v, want it refused because of the target", result)
	}
	if effects := c.effects(); len(effects) > 0 {
		t.Errorf("there were effects: %v", effects)
	}
}

// Without credentials the job fails before an engine starts, and says what to do.
// The sandbox's cluster never stands in.
func TestWithoutCredentialsForAContextNothingIsStarted(t *testing.T) {
	t.Parallel()
	address, authority := apiServer(t, "uid-west", westToken)
	noToken := outputsOf(address, authority, "")
	for _, tc := range []struct {
		name    string
		outputs map[string]any
		want    string
		reason  jobspec.Reason
	}{
		{"the component gave nothing out", nil, "are not there yet", jobspec.ReasonNeedsChange},
		{"an address alone", noToken, "no credentials", jobspec.ReasonNeedsChange},
		{"a token that is refused", outputsOf(address, authority, "an-old-token"), "does not accept these credentials", ""},
		{"a server that proves nothing", outputsOf(address, otherAuthority(t), westToken), "cannot be reached", ""},
		{"a kubeconfig that reads the runner's files", map[string]any{"kubeconfig": "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n" +
			"clusters: [{name: c, cluster: {server: \"" + address + "\"}}]\nusers: [{name: u, user: {tokenFile: /etc/hostname}}]\n"}, "tokenFile", jobspec.ReasonNeedsChange},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			r.outputs = tc.outputs
			withCluster(r)
			r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
			c := &change{runner: r, shape: inWest, resource: jobspec.Resource{ID: "res_01jd2x7q9zr8w3v5k6m4n0tgha", Kind: "component", Name: "web"}, id: "chg_01jd2x7q9zr8w3v5k6m4n0tgha"}
			c.artifact = jobspec.Artifact{Repository: "org/shop/api", Digest: "sha256:" + strings.Repeat("0", 64)}
			spec := c.spec(jobspec.OperationPlan)
			spec.State = r.sealed(map[string]any{})
			result := r.plane.result(t, r.plane.give(spec))
			if result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, tc.want) || result.Remedy == "" || result.Reason != tc.reason {
				t.Errorf("result = %+v, want a failure with %q and a remedy", result, tc.want)
			}
			if tc.reason != "" && !strings.Contains(result.Remedy, filepath.Join(r.dir.Contexts(), "west")) {
				t.Errorf("remedy %q does not name the file", result.Remedy)
			}
		})
	}
}

// otherAuthority is one that signed nothing.
func otherAuthority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func giveContext(t *testing.T, dir datadir.Dir, name string, kubeconfig []byte) {
	t.Helper()
	if err := os.MkdirAll(dir.Contexts(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir.Contexts(), name), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
}
