package engine_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// backend is an HTTP state backend as the agent's proxy is one: a state and a
// lock, behind a password, with POST and DELETE for the lock.
type backend struct {
	server *httptest.Server

	mu     sync.Mutex
	state  []byte
	lock   []byte
	writes int
	full   bool // refuses to take a state
	away   bool // gives out no state
	// leave makes it go away with the next state that it takes.
	leave bool
	// took is called, under the lock of mu, after each state that it takes.
	took func(writes int)
	// refuses makes it answer that a state is not the one to take.
	refuses bool
	// hold makes reads wait until the test ends.
	hold    bool
	holding bool
	ended   <-chan struct{}
}

const backendPassword = "backend-password-1234"

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{ended: t.Context().Done()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", b.get)
	mux.HandleFunc("POST /state", b.put)
	mux.HandleFunc("POST /lock", b.acquire)
	mux.HandleFunc("DELETE /lock", b.release)
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != backendPassword {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.hold && r.Method == http.MethodGet {
			b.holding = true
			b.mu.Unlock()
			select {
			case <-b.ended:
			case <-r.Context().Done():
			}
			b.mu.Lock()
			return
		}
		if b.away && r.Method == http.MethodGet {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(b.server.Close)
	return b
}

// env is what the agent gives an engine of the backend.
func (b *backend) env() map[string]string {
	return map[string]string{
		"TF_HTTP_ADDRESS": b.server.URL + "/state", "TF_HTTP_USERNAME": "job_1", "TF_HTTP_PASSWORD": backendPassword,
		"TF_HTTP_LOCK_ADDRESS": b.server.URL + "/lock", "TF_HTTP_UNLOCK_ADDRESS": b.server.URL + "/lock",
		"TF_HTTP_LOCK_METHOD": "POST", "TF_HTTP_UNLOCK_METHOD": "DELETE", "TF_HTTP_RETRY_MAX": "0",
	}
}

func (b *backend) get(w http.ResponseWriter, _ *http.Request) {
	if b.state == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(b.state)
}

func (b *backend) put(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if b.refuses {
		w.WriteHeader(http.StatusConflict)
		return
	}
	if b.full || err != nil {
		w.WriteHeader(http.StatusInsufficientStorage)
		return
	}
	b.state = body
	b.writes++
	b.away = b.leave
	if b.took != nil {
		b.took(b.writes)
	}
}

func (b *backend) acquire(w http.ResponseWriter, r *http.Request) {
	if b.lock != nil {
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(b.lock)
		return
	}
	b.lock, _ = io.ReadAll(r.Body)
}

func (b *backend) release(http.ResponseWriter, *http.Request) { b.lock = nil }

type storedState struct {
	Lineage   string `json:"lineage"`
	Serial    int64  `json:"serial"`
	Resources []any  `json:"resources"`
}

func (b *backend) stored(t *testing.T) storedState {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var s storedState
	if b.state != nil {
		if err := json.Unmarshal(b.state, &s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (b *backend) locked() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lock != nil
}

// set changes the backend's own fields.
func (b *backend) set(change func(*backend)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}
