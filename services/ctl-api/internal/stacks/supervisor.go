package stacks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// callTimeout bounds one call: the supervisor answers once it has written the
// order down, before it starts anything.
const callTimeout = 10 * time.Second

// Order asks the supervisor to start a runner and to keep it alive.
type Order struct {
	RunnerID        string        `json:"-"`
	Kind            string        `json:"kind"` // install
	OrgID           string        `json:"org_id"`
	InstallID       string        `json:"install_id"`
	Name            string        `json:"name"`
	EnrolmentSecret string        `json:"enrolment_secret"`
	PhoneHomeSecret string        `json:"phone_home_secret"`
	StackVersion    int           `json:"stack_version"`
	DispatchKeys    []DispatchKey `json:"dispatch_keys"`
	RunnerAPIURL    string        `json:"runner_api_url"`
	LogURL          string        `json:"log_url"`
}

// DispatchKey is a key that the runner pins.
type DispatchKey struct {
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"`
}

// Supervisor is the one of `berth up`, behind its unix socket. Its calls may be
// repeated.
type Supervisor struct {
	client *http.Client
}

// NewSupervisor makes a client of the supervisor at a socket; with an empty
// path every call says that there is none.
func NewSupervisor(socket string) *Supervisor {
	if socket == "" {
		return &Supervisor{}
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Supervisor{client: &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: callTimeout}}
}

// Start has the supervisor start a runner.
func (s *Supervisor) Start(ctx context.Context, order Order) error {
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	return s.call(ctx, http.MethodPut, order.RunnerID, body)
}

// Stop has the supervisor stop a runner. One that it does not know is stopped.
func (s *Supervisor) Stop(ctx context.Context, runnerID string) error {
	return s.call(ctx, http.MethodDelete, runnerID, nil)
}

func (s *Supervisor) call(ctx context.Context, method, runnerID string, body []byte) error {
	if s.client == nil {
		return errors.New("there is no supervisor here: set BERTH_SUPERVISOR_SOCKET, or start the system with `berth up`")
	}
	// The host is never looked up: the transport dials the socket.
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor/runners/"+url.PathEscape(runnerID), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode/100 == 2, method == http.MethodDelete && resp.StatusCode == http.StatusNotFound:
		return nil
	}
	// Not the body: it could repeat the secrets of the order.
	return fmt.Errorf("supervisor answered %s", resp.Status)
}
