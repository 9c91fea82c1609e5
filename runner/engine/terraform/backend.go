package terraform

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxStateBytes is what a backend may answer, far above any real state.
const maxStateBytes = 256 << 20

// backend is Terraform's HTTP backend, which the agent answers, as the
// environment of Terraform describes it.
type backend map[string]string

// ask makes a request of the backend's protocol.
func (b backend) ask(ctx context.Context, method, address string, body []byte) (int, []byte, error) {
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
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxStateBytes))
	return resp.StatusCode, answer, err
}

const (
	readTimeout = 2 * time.Minute // long enough for the agent to be started again
	readRetry   = 250 * time.Millisecond
)

// presentState reads the state, as `terraform state pull` does but without
// starting another process. It tries again while the agent is away.
func presentState(ctx context.Context, env map[string]string) (stateFile, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	retry := time.NewTicker(readRetry)
	defer retry.Stop()
	for {
		status, body, err := backend(env).ask(ctx, http.MethodGet, env["TF_HTTP_ADDRESS"], nil)
		switch {
		case err == nil && status == http.StatusOK:
			return parseState(body)
		case err == nil && (status == http.StatusNoContent || status == http.StatusNotFound):
			return stateFile{}, nil
		case err == nil && status < http.StatusInternalServerError:
			return stateFile{}, fmt.Errorf("the state backend answers %s", http.StatusText(status))
		case err == nil:
			err = fmt.Errorf("the state backend answers %s", http.StatusText(status))
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return stateFile{}, err
		}
	}
}
