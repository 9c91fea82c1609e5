package kube

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCertificateSecrets(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ref  Ref
		obj  string
		want []string
	}{
		"an Ingress": {Ref{Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop"}, `{"spec":{"tls":[{"secretName":"a"},{"hosts":["x"]},{"secretName":"b"}]}}`, []string{"shop/a", "shop/b"}},
		"a Gateway": {
			Ref{Group: "gateway.networking.k8s.io", Kind: "Gateway", Namespace: "shop"},
			`{"spec":{"listeners":[{"tls":{"certificateRefs":[{"name":"a"},{"kind":"Secret","name":"b","namespace":"certs"},{"kind":"Vault","name":"c"}]}},{"port":80}]}}`,
			[]string{"shop/a", "certs/b"},
		},
		"a Certificate":            {Ref{Group: "cert-manager.io", Kind: "Certificate", Namespace: "shop"}, `{"spec":{"secretName":"a"}}`, []string{"shop/a"}},
		"a Secret is one itself":   {Ref{Version: "v1", Kind: "Secret", Namespace: "shop", Name: "a"}, ``, []string{"shop/a"}},
		"one that is not there":    {Ref{Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop"}, ``, nil},
		"one that is of no form":   {Ref{Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop"}, `{"spec":{"tls":"x"}}`, nil},
		"tls of something strange": {Ref{Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop"}, `{"spec":{"tls":[7,{"secretName":7}]}}`, nil},
	} {
		var obj *unstructured.Unstructured
		if tt.obj != "" {
			obj = &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(tt.obj), &obj.Object); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, ref := range certificateSecrets(tt.ref, obj) {
			got = append(got, ref.Namespace+"/"+ref.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || !namesCertificates(tt.ref) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if namesCertificates(Ref{Version: "v1", Kind: "ConfigMap"}) || namesCertificates(Ref{Group: "acme.example", Kind: "Ingress"}) {
		t.Error("other kinds are read for certificates")
	}
}

// Of a Secret only the certificate is told, and of other Secrets nothing.
func TestCertificateInSecret(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	chain := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	key := base64.StdEncoding.EncodeToString([]byte("canary"))
	secret := func(kind, crt string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"type": kind, "data": map[string]any{"tls.crt": crt, "tls.key": key}}}
	}
	ref := Ref{Version: "v1", Kind: "Secret", Namespace: "shop", Name: "web-tls"}
	got, ok := certificateIn(ref, secret("kubernetes.io/tls", chain))
	if !ok || got.Place != "Secret shop/web-tls" || got.Subject != "example.com" || !got.NotAfter.Equal(server.Certificate().NotAfter) {
		t.Errorf("the certificate is %+v, %t", got, ok)
	}
	if text := fmt.Sprintf("%+v", got); strings.Contains(text, "canary") || strings.Contains(text, key) || strings.Contains(text, chain) {
		t.Errorf("it tells too much: %s", text)
	}
	for name, obj := range map[string]*unstructured.Unstructured{
		"another type": secret("Opaque", chain), "no certificate": secret("kubernetes.io/tls", key), "no base64": secret("kubernetes.io/tls", "%"), "not there": nil, "empty": {Object: map[string]any{}},
	} {
		if c, ok := certificateIn(ref, obj); ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// Of a Secret that the runner may not read nothing is said; when the cluster does not answer,
// nothing is said at all.
func TestCertificatesThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	tls := httptest.NewTLSServer(nil)
	t.Cleanup(tls.Close)
	chain := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		refuse := func(reason string, code int) {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
		}
		switch r.URL.Path {
		case "/version":
			fmt.Fprint(w, `{"gitVersion":"v1.34.0"}`)
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["get"]}]}`)
		case "/api/v1/namespaces/shop/secrets/good":
			fmt.Fprintf(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"good"},"type":"kubernetes.io/tls","data":{"tls.crt":%q,"tls.key":"Y2FuYXJ5"}}`, chain)
		case "/api/v1/namespaces/shop/secrets/closed":
			refuse("Forbidden", http.StatusForbidden)
		case "/api/v1/namespaces/shop/secrets/ill":
			refuse("InternalError", http.StatusInternalServerError)
		default:
			refuse("NotFound", http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \"" + server.URL + "\"}}]\ncontexts: [{name: a, context: {cluster: a}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		secrets []string
		want    string
	}{
		"one may not be read": {[]string{"closed", "good", "good", "gone"}, `[Secret shop/good]`},
		"none may be read":    {[]string{"closed"}, `[]`},
		"there are none":      {nil, `[]`},
		"no answer":           {[]string{"good", "ill"}, `nil`},
	} {
		refs := []Ref{{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "other"}}
		for _, secret := range tt.secrets {
			refs = append(refs, Ref{Version: "v1", Kind: "Secret", Namespace: "shop", Name: secret})
		}
		found := c.Certificates(t.Context(), refs)
		places := []string{}
		for _, cert := range found {
			places = append(places, cert.Place)
		}
		got := fmt.Sprint(places)
		if found == nil {
			got = "nil"
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
