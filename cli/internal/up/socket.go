package up

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// The supervisor's own small API, on a unix socket in a folder that only its
// user can enter:
//
//	PUT    /runners/{id}  start a runner and keep it running (Order); 202
//	GET    /runners/{id}  how it is
//	DELETE /runners/{id}  stop it permanently; 204
//	GET    /status        everything (Status)
//	POST   /restart       restart parts whose executables were replaced (Restarted)
//
// All of them may be repeated.

const (
	maxOrderBytes = 1 << 20

	// socketTimeout bounds how long the last answers may take at the end.
	socketTimeout = 5 * time.Second
)

// runnerID is what a runner may be called: it becomes the name of a directory.
var runnerID = regexp.MustCompile(`^rnr_[0-9A-Za-z]{1,60}$`)

// listen serves the socket until the returned function is called. Runners that it
// starts on request phone home until ctx ends.
func (s *supervisor) listen(ctx context.Context) (stop func(), err error) {
	path := s.Layout.Socket()
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
		return nil, onDisk(s.Layout.Dir, err)
	}
	// The lock is ours, so a socket that is there has nobody behind it.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, onDisk(s.Layout.Dir, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, problem(err, "set BERTH_DATA to another folder", "supervisor socket: %v", err)
	}
	server := &http.Server{Handler: s.routes(ctx), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with Shutdown
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), socketTimeout)
		defer cancel()
		_ = server.Shutdown(ctx) // what is still open then is cut
		_ = server.Close()
		<-done
	}, nil
}

func (s *supervisor) routes(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /runners/{id}", func(w http.ResponseWriter, r *http.Request) { s.putRunner(ctx, w, r) })
	mux.HandleFunc("GET /runners/{id}", s.getRunner)
	mux.HandleFunc("DELETE /runners/{id}", s.deleteRunner)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, s.status(r.Context()))
	})
	mux.HandleFunc("POST /restart", s.postRestart)
	return mux
}

// ask sends a request to the supervisor of a data folder. It is an error when
// nobody is there.
func ask(ctx context.Context, l Layout, method, path string) (*http.Response, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", l.Socket())
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

// putRunner starts a runner that outlives the request: ctx is the supervisor's.
func (s *supervisor) putRunner(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	var order Order
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrderBytes)).Decode(&order)
	switch {
	case err != nil || !runnerID.MatchString(id) || order.RunnerAPIURL == "" || order.Name == "":
		answer(w, http.StatusUnprocessableEntity, map[string]string{"detail": "not an order for a runner"})
		return
	}
	if err := s.accept(ctx, id, order); err != nil {
		s.Say("! runner " + order.Name + ": " + err.Error())
		answer(w, http.StatusServiceUnavailable, map[string]string{"detail": err.Error()})
		return
	}
	answer(w, http.StatusAccepted, s.runnerStatuses()[id])
}

func (s *supervisor) getRunner(w http.ResponseWriter, r *http.Request) {
	status, ok := s.runnerStatuses()[r.PathValue("id")]
	if !ok {
		answer(w, http.StatusNotFound, map[string]string{"detail": "no such runner"})
		return
	}
	answer(w, http.StatusOK, status)
}

func (s *supervisor) deleteRunner(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !runnerID.MatchString(id) {
		answer(w, http.StatusNotFound, map[string]string{"detail": "no such runner"})
		return
	}
	if err := s.remove(id); err != nil {
		answer(w, http.StatusServiceUnavailable, map[string]string{"detail": err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller is gone when it fails
}
