package registry_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/agent/registry"
)

// A stranger in the network gets nothing out of the registry of a cluster, and
// a kubelet that asks a relay gets everything.
func TestAttackRegistryWithoutToken(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "layer") })
	guarded := httptest.NewServer(registry.Guard(token, served))
	defer guarded.Close()
	relay := httptest.NewServer(registry.Relay(strings.TrimPrefix(guarded.URL, "http://"), token, log))
	defer relay.Close()
	lost := httptest.NewServer(registry.Relay("127.0.0.1:1", token, log))
	defer lost.Close()

	const image = "/v2/web_image/manifests/latest"
	for _, tc := range []struct {
		name, url, method, authorization string
		want                             int
	}{
		{name: "no token", url: guarded.URL + image, want: http.StatusUnauthorized},
		{name: "an empty token", url: guarded.URL + image, authorization: "Bearer ", want: http.StatusUnauthorized},
		{name: "another token", url: guarded.URL + image, authorization: "Bearer 0123456789abcdee", want: http.StatusUnauthorized},
		{name: "the token as a password", url: guarded.URL + image, authorization: "Basic MDEyMzQ1Njc4OWFiY2RlZjo=", want: http.StatusUnauthorized},
		{name: "a path that only begins like the probe's", url: guarded.URL + "/v2//web_image/manifests/latest", want: http.StatusUnauthorized},
		{name: "the token", url: guarded.URL + image, authorization: "Bearer " + token, want: http.StatusOK},
		{name: "the probe", url: guarded.URL + "/v2/", want: http.StatusOK},
		{name: "a relay", url: relay.URL + image, want: http.StatusOK},
		{name: "a relay, with a token of the caller's own", url: relay.URL + image, authorization: "Bearer x", want: http.StatusOK},
		{name: "a push to a relay", url: relay.URL + image, method: http.MethodPut, want: http.StatusMethodNotAllowed},
		{name: "a relay whose registry is away", url: lost.URL + image, want: http.StatusBadGateway},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.authorization != "" {
			req.Header.Set("Authorization", tc.authorization)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tc.want || tc.want != http.StatusOK && strings.Contains(string(body), "layer") {
			t.Errorf("%s: %s %s, want %d", tc.name, resp.Status, body, tc.want)
		}
	}
}
