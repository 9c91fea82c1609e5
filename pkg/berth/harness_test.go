package berth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/berth"
)

// token is what must be seen by the control plane alone.
const token = "brt_canary_7d1f0e5c"

// service answers over real HTTP; what it answers is the test's.
func service(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// client is one of a service.
func client(t *testing.T, server *httptest.Server, change ...func(*berth.Options)) *berth.Client {
	t.Helper()
	opts := berth.Options{URL: server.URL, Token: token, Patience: 5 * time.Second}
	for _, c := range change {
		c(&opts)
	}
	made, err := berth.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	if status >= http.StatusBadRequest {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, body)
}
