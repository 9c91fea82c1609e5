package keyring_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
)

// googleCloud is the token service of Google Cloud: it verifies the signature of a
// service account's assertion. And a metadata server.
type googleCloud struct {
	key *rsa.PublicKey
	url string
}

func (g *googleCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" && r.Header.Get("Metadata-Flavor") == "Google":
		w.Header().Set("Metadata-Flavor", "Google")
		fmt.Fprint(w, `{"access_token":"of-the-machine","expires_in":3600,"token_type":"Bearer"}`)
	case r.Form.Get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer" && g.signed(r.Form.Get("assertion")):
		fmt.Fprint(w, `{"access_token":"of-the-account","expires_in":3600,"token_type":"Bearer"}`)
	default:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"for %s"}`, r.Form.Get("assertion"))
	}
}

func (g *googleCloud) signed(assertion string) bool {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], signature) != nil {
		return false
	}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		Scope    string `json:"scope"`
		Expires  int64  `json:"exp"`
	}
	return json.Unmarshal(raw, &claims) == nil && claims.Issuer == "reader@acme.test" && claims.Audience == g.url &&
		claims.Scope == "https://www.googleapis.com/auth/cloud-platform.read-only" && time.Until(time.Unix(claims.Expires, 0)) > 0
}

// account is the key file of a service account.
func account(t *testing.T, key *rsa.PrivateKey, tokenURL string) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "reader@acme.test", "token_uri": tokenURL, "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, string(raw))
}

func TestGoogle(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	cloud := &googleCloud{key: &key.PublicKey}
	server := httptest.NewServer(cloud)
	defer server.Close()
	cloud.url = server.URL
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	for _, tc := range []struct{ name, entry, password, says string }{
		{"the key of a service account", fmt.Sprintf(`{"helper": "google", "key_file": %q}`, account(t, key, server.URL)), "of-the-account", ""},
		{"the machine", `{"helper": "google"}`, "of-the-machine", ""},
		{"a key that was revoked", fmt.Sprintf(`{"helper": "google", "key_file": %q}`, account(t, other, server.URL)), "", "Google Cloud refuses builder's identity: invalid_grant"},
		{"a key file that is none", fmt.Sprintf(`{"helper": "google", "key_file": %q}`, write(t, `{"type":"external_account"}`)), "", "is not the key of a service account"},
		{"no key file", `{"helper": "google", "key_file": "/does/not/exist"}`, "", "cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ring(t, `{"oci://europe-docker.pkg.dev/acme": `+tc.entry+`}`, keyring.Options{})
			got, err := login(t, r, "oci://europe-docker.pkg.dev/acme/images/web", "org_1", keyring.ECR{})
			if tc.says == "" {
				if want := (oci.Login{Username: "oauth2accesstoken", Password: tc.password}); err != nil || got != want {
					t.Errorf("Login: %+v, %v, want %+v", got, err, want)
				}
				return
			}
			if e, ok := errors.AsType[*keyring.Error](err); !ok || !strings.Contains(e.Error(), tc.says) || strings.Contains(e.Error(), "eyJ") {
				t.Errorf("Login: %v, want …%s without the assertion", err, tc.says)
			}
		})
	}
}

// azureCloud is Azure's directory, its token server for machines, and the door of a
// registry that exchanges the tokens of both.
type azureCloud struct{ secret, assertion string }

// jwt is a token that ends in an hour; nobody checks who signed it.
func jwt(about string) string {
	claims, _ := json.Marshal(map[string]any{"exp": time.Now().Add(time.Hour).Unix(), "sub": about})
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
}

func (a *azureCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	application := r.URL.Path == "/tenant-1/oauth2/v2.0/token" && r.Form.Get("grant_type") == "client_credentials" &&
		r.Form.Get("client_id") == "client-1" && r.Form.Get("scope") == "https://containerregistry.azure.net/.default"
	workload := r.Form.Get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" && r.Form.Get("client_assertion") == a.assertion
	machine := r.URL.Path == "/machine" && r.Header.Get("Metadata") == "true" && r.Form.Get("resource") == "https://containerregistry.azure.net/"
	switch {
	case application && (r.PostForm.Get("client_secret") == a.secret || workload), machine:
		fmt.Fprint(w, `{"access_token":"of-the-directory","expires_in":3599}`)
	case r.Method == http.MethodPost && r.URL.Path == "/oauth2/exchange" && r.PostForm.Get("grant_type") == "access_token" && r.PostForm.Get("service") == r.Host && r.PostForm.Get("access_token") == "of-the-directory":
		fmt.Fprintf(w, `{"refresh_token":%q}`, jwt("refresh"))
	default:
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":%q}`, r.Form.Encode())
	}
}

func TestAzure(t *testing.T) {
	cloud := &azureCloud{secret: "application-secret", assertion: "of-the-pod"}
	server := httptest.NewServer(cloud)
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	options := keyring.Options{AzureAuthority: server.URL, AzureIdentity: server.URL + "/machine"}
	for _, tc := range []struct {
		name, entry, says string
		env               map[string]string
	}{
		{name: "an application", entry: `{"helper": "azure", "tenant_id": "tenant-1", "client_id": "client-1", "client_secret": "application-secret"}`},
		{name: "a machine", entry: `{"helper": "azure"}`},
		{name: "a pod's workload identity", entry: `{"helper": "azure"}`,
			env: map[string]string{"AZURE_TENANT_ID": "tenant-1", "AZURE_CLIENT_ID": "client-1", "AZURE_FEDERATED_TOKEN_FILE": write(t, "of-the-pod\n")}},
		{name: "a secret that ended", entry: `{"helper": "azure", "tenant_id": "tenant-1", "client_id": "client-1", "client_secret": "old-secret"}`, says: "Azure refuses builder's identity: invalid_client"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			r := ring(t, fmt.Sprintf(`{"oci://%s": %s}`, at.Host, tc.entry), options)
			got, err := login(t, r, "oci://"+at.Host+"/team/web", "org_1", keyring.ECR{})
			if tc.says == "" {
				if want := (oci.Login{IdentityToken: got.IdentityToken}); err != nil || got != want || !strings.HasPrefix(got.IdentityToken, "eyJ") {
					t.Errorf("Login: %+v, %v, want an identity token", got, err)
				}
				return
			}
			if e, ok := errors.AsType[*keyring.Error](err); !ok || !strings.Contains(e.Error(), tc.says) || strings.Contains(e.Error(), "secret") {
				t.Errorf("Login: %v, want …%s without the secret", err, tc.says)
			}
		})
	}
}
