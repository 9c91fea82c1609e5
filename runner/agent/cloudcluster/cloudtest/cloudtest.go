// Package cloudtest stands in for the clouds that package cloudcluster asks, over
// their real protocols, on loopback. Only tests import it.
package cloudtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/berth-dev/berth/pkg/cloudauth"
	"github.com/berth-dev/berth/runner/agent/cloudcluster"
)

// The identity that the stand-ins know.
const (
	AccessKey  = "AKIATESTIDENTITY0000"
	Secret     = "aws-secret-of-the-runner" //nolint:gosec // G101: opens nothing
	Session    = "aws-session-of-the-runner"
	Account    = "123456789012"
	noBody     = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	federation = "token-of-the-pods-service-account"
)

// Cloud is a cluster's cloud. Server and Authority (PEM) are what it says of every
// cluster of the name that it knows.
type Cloud struct {
	URL       string
	Server    string
	Authority string
	// Life is that of the tokens of Google and Azure.
	Life time.Duration
	// Status is what the description of a cluster is answered with, 0 for 200.
	Status int

	t      *testing.T
	mu     sync.Mutex
	asked  []string
	issued int
}

// New starts one and gives this process an identity in it. The test may not be
// parallel: identities are of the environment.
func New(t *testing.T) *Cloud {
	t.Helper()
	c := &Cloud{t: t, Life: time.Hour}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	for name, value := range map[string]string{ //nolint:gosec // G101: they open nothing
		"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": Secret, "AWS_SESSION_TOKEN": Session,
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_PROFILE": "", "AWS_ROLE_ARN": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
		"GCE_METADATA_HOST": strings.TrimPrefix(server.URL, "http://"), "GOOGLE_APPLICATION_CREDENTIALS": "", "HOME": t.TempDir(),
		"AZURE_TENANT_ID": "", "AZURE_CLIENT_ID": "", "AZURE_FEDERATED_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	return c
}

// Clouds ask the stand-in.
func (c *Cloud) Clouds() cloudcluster.Clouds {
	return cloudcluster.Clouds{
		EKS: c.URL, GKE: c.URL, ARM: c.URL,
		Azure: cloudauth.Azure{Authority: c.URL, Identity: c.URL + "/identity"},
	}
}

// Asked lists what it was asked.
func (c *Cloud) Asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.asked...)
}

// OpensEKS verifies a token as EKS does through STS: the presigned question names the
// cluster in a signed header, and no older one than 15 minutes counts.
func OpensEKS(token, cluster, region string, now time.Time) error {
	ctx := context.Background() // for a signature, which asks nobody
	encoded, ok := strings.CutPrefix(token, "k8s-aws-v1.")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return fmt.Errorf("not a token of EKS")
	}
	u, err := url.Parse(string(raw))
	if err != nil {
		return err
	}
	q := u.Query()
	at, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	switch {
	case err != nil || now.Sub(at) > 15*time.Minute || at.Sub(now) > time.Minute:
		return fmt.Errorf("signed at %s", q.Get("X-Amz-Date"))
	case u.Scheme != "https" || u.Host != "sts."+region+".amazonaws.com" || u.Path != "/":
		return fmt.Errorf("sent to %s", u.Redacted())
	case q.Get("Action") != "GetCallerIdentity" || q.Get("Version") != "2011-06-15" || q.Get("X-Amz-Expires") != "60":
		return fmt.Errorf("asks %s", u.RawQuery)
	case !strings.Contains(q.Get("X-Amz-SignedHeaders"), "x-k8s-aws-id"):
		return fmt.Errorf("for no cluster")
	}
	plain := url.Values{}
	for _, name := range []string{"Action", "Version", "X-Amz-Expires"} {
		plain.Set(name, q.Get(name))
	}
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "https://"+u.Host+"/?"+plain.Encode(), nil)
	req.Header = http.Header{"X-K8s-Aws-Id": {cluster}}
	again, _, err := v4.NewSigner().PresignHTTP(req.Context(), aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: Secret, SessionToken: Session}, req, noBody, "sts", region, at)
	if err != nil {
		return err
	}
	v, err := url.Parse(again)
	if err != nil {
		return err
	}
	if v.Query().Get("X-Amz-Signature") != q.Get("X-Amz-Signature") {
		return fmt.Errorf("the signature is of another question")
	}
	return nil
}

// ServeHTTP answers for all three clouds.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.Method+" "+r.URL.Path)
	answer := func(body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	describes := strings.HasPrefix(r.URL.Path, "/clusters/") || strings.HasPrefix(r.URL.Path, "/v1/projects/") || strings.HasSuffix(r.URL.Path, "/listClusterUserCredential")
	switch {
	case describes && c.Status != 0:
		w.WriteHeader(c.Status)
	case strings.HasPrefix(r.URL.Path, "/clusters/"):
		if problem := c.signed(r); problem != "" {
			w.WriteHeader(http.StatusForbidden)
			answer(map[string]string{"message": problem + " " + Secret})
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/clusters/")
		answer(map[string]any{"cluster": map[string]any{
			"arn": "arn:aws:eks:eu-central-1:" + Account + ":cluster/" + name, "endpoint": c.Server,
			"certificateAuthority": map[string]string{"data": base64.StdEncoding.EncodeToString([]byte(c.Authority))},
		}})
	case r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" && r.Header.Get("Metadata-Flavor") == "Google":
		c.issued++
		answer(map[string]any{"access_token": "google-token-" + strconv.Itoa(c.issued), "expires_in": int(c.Life / time.Second), "token_type": "Bearer"})
	case strings.HasPrefix(r.URL.Path, "/v1/projects/") && strings.HasPrefix(bearer, "google-"):
		u, _ := url.Parse(c.Server)
		answer(map[string]any{"endpoint": u.Host, "masterAuth": map[string]string{"clusterCaCertificate": base64.StdEncoding.EncodeToString([]byte(c.Authority))}})
	case r.URL.Path == "/identity" && r.Header.Get("Metadata") == "true":
		answer(map[string]any{"access_token": c.azure(r.URL.Query().Get("resource"))})
	case r.URL.Path == "/tenant/oauth2/v2.0/token" && r.FormValue("client_assertion") == federation:
		answer(map[string]any{"access_token": c.azure(strings.TrimSuffix(r.FormValue("scope"), "/.default"))})
	case strings.HasSuffix(r.URL.Path, "/listClusterUserCredential") && r.Method == http.MethodPost && strings.Contains(bearer, base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"https://management.azure.com"`))[:40]):
		text := fmt.Sprintf("clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\n", c.Server, base64.StdEncoding.EncodeToString([]byte(c.Authority)))
		answer(map[string]any{"kubeconfigs": []any{map[string]string{"name": "clusterUser", "value": base64.StdEncoding.EncodeToString([]byte(text))}}})
	default:
		w.WriteHeader(http.StatusUnauthorized)
		answer(map[string]any{"error": map[string]any{"status": "UNAUTHENTICATED", "message": "about " + bearer}})
	}
}

// azure is a token for a resource, as a JSON web token that nobody signed.
func (c *Cloud) azure(resource string) string {
	c.issued++
	claims := fmt.Sprintf(`{"aud":%q,"exp":%d,"n":%d}`, resource, time.Now().Add(c.Life).Unix(), c.issued)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
}

// Federation is what the file of a workload identity has to hold.
func Federation() string { return federation }

// signed computes the signature of a request again; "" when it is right.
func (c *Cloud) signed(r *http.Request) string {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return "InvalidSignatureException"
	}
	again := httptest.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	again.Host = r.Host
	identity := aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: Secret, SessionToken: Session}
	if err := v4.NewSigner().SignHTTP(r.Context(), identity, again, noBody, "eks", "eu-central-1", at); err != nil {
		return err.Error()
	}
	if again.Header.Get("Authorization") != r.Header.Get("Authorization") {
		return "SignatureDoesNotMatch"
	}
	return ""
}
