// Package stateclient talks to the state backend that the agent keeps for a job, by
// the protocol of Terraform's HTTP backend. Terraform does so itself; other tools
// have their state brought and taken away by it.
package stateclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// maxBytes is what a backend may answer, far above any real state.
const maxBytes = 256 << 20

const (
	readTimeout = 2 * time.Minute // long enough for the agent to be started again
	readRetry   = 250 * time.Millisecond
)

// Backend is the backend as the environment of a job describes it (TF_HTTP_…).
type Backend map[string]string

// Ask makes a request of the protocol.
func (b Backend) Ask(ctx context.Context, method, address string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.SetBasicAuth(b["TF_HTTP_USERNAME"], b["TF_HTTP_PASSWORD"])
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes))
	return resp.StatusCode, answer, err
}

// Read returns the state, nil when there is none. It tries again while the agent is
// away.
func (b Backend) Read(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	retry := time.NewTicker(readRetry)
	defer retry.Stop()
	for {
		status, body, err := b.Ask(ctx, http.MethodGet, b["TF_HTTP_ADDRESS"], nil)
		switch {
		case err == nil && status == http.StatusOK:
			return body, nil
		case err == nil && (status == http.StatusNoContent || status == http.StatusNotFound):
			return nil, nil
		case err == nil && status < http.StatusInternalServerError:
			return nil, fmt.Errorf("the state backend answers %s", http.StatusText(status))
		case err == nil:
			err = fmt.Errorf("the state backend answers %s", http.StatusText(status))
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Lock is a lock on the state that this engine holds.
type Lock struct {
	backend Backend
	info    []byte
	id      string
}

// Lock takes the lock under an id of the caller's. It fails when somebody has it.
func (b Backend) Lock(ctx context.Context, id, operation string) (*Lock, error) {
	info, err := json.Marshal(map[string]string{"ID": id, "Operation": operation, "Created": time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return nil, err
	}
	status, body, err := b.Ask(ctx, cmp.Or(b["TF_HTTP_LOCK_METHOD"], "LOCK"), b["TF_HTTP_LOCK_ADDRESS"], info)
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("the state is locked (%s): %s", http.StatusText(status), bytes.TrimSpace(body))
	}
	return &Lock{backend: b, info: info, id: id}, nil
}

// Write hands in a state under the lock. An agent that is away is tried again:
// without the state nobody knows what was done.
func (l *Lock) Write(ctx context.Context, state []byte) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	retry := time.NewTicker(readRetry)
	defer retry.Stop()
	for {
		status, body, err := l.backend.Ask(ctx, http.MethodPost, l.backend["TF_HTTP_ADDRESS"]+"?ID="+url.QueryEscape(l.id), state)
		switch {
		case err == nil && status/100 == 2:
			return nil
		case err == nil && status < http.StatusInternalServerError:
			return fmt.Errorf("the state backend answers %s: %s", http.StatusText(status), bytes.TrimSpace(body))
		case err == nil:
			err = fmt.Errorf("the state backend answers %s", http.StatusText(status))
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Free gives the lock back. The agent frees one that is left behind.
func (l *Lock) Free(ctx context.Context) error {
	status, _, err := l.backend.Ask(ctx, cmp.Or(l.backend["TF_HTTP_UNLOCK_METHOD"], "UNLOCK"), l.backend["TF_HTTP_UNLOCK_ADDRESS"], l.info)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("the state backend answers %s", http.StatusText(status))
	}
	return err
}
