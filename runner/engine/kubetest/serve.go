package kubetest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/runner/engine/kube"
)

// Serve connects to an API server that answers as the handler does: for what a real
// cluster cannot be brought to say. It has to answer GET /version.
func Serve(t *testing.T, handler http.Handler) (*kube.Cluster, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \"" + server.URL + "\"}}]\ncontexts: [{name: a, context: {cluster: a}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return c, server
}
