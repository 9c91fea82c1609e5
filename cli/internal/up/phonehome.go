package up

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	phoneHomeTimeout = 10 * time.Second
	phoneHomeDelay   = time.Second // between tries, while runner-api is away
)

// phoneHome reports that the local stack stands, as the stack of a cloud would:
// with its outputs and the secret from its template. It tries until the answer
// is a yes or a no.
func (s *supervisor) phoneHome(ctx context.Context, id string, r RunnerRecord) {
	dir := s.Layout.runnerDir(id)
	secret, err := os.ReadFile(phoneHomeFile(dir))
	if err != nil {
		if !os.IsNotExist(err) {
			s.Say(fmt.Sprintf("! runner %s cannot phone home: %v", r.Name, err))
		}
		return // it has no stack to report
	}
	body, err := json.Marshal(map[string]any{
		"secret":  strings.TrimSpace(string(secret)),
		"outputs": stackOutputs(dir),
	})
	if err != nil {
		return // strings: cannot fail
	}
	for told := false; ; {
		final, err := postPhoneHome(ctx, r.RunnerAPIURL, body)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			err = s.ledger.change(func(st *State) {
				if now, ok := st.Runners[id]; ok && now.Order == r.Order {
					now.PhonedHome = true
					st.Runners[id] = now
				}
			})
			if err == nil {
				_ = os.Remove(phoneHomeFile(dir)) // used up
				return
			}
		case final:
			s.Say(fmt.Sprintf("! runner %s: the control plane does not take its stack: %v", r.Name, err))
			return
		}
		if !told {
			s.Say(fmt.Sprintf("! runner %s cannot phone home yet: %v", r.Name, err))
			told = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(phoneHomeDelay):
		}
	}
}

// postPhoneHome sends the report; final says that trying again is no use.
func postPhoneHome(ctx context.Context, base string, body []byte) (final bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, phoneHomeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(base, "/")+"/stacks/phone-home", bytes.NewReader(body))
	if err != nil {
		return true, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := probes.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 == 2 {
		return true, nil
	}
	var answer struct{ Code, Detail string }
	_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&answer) // the status says enough without it
	err = fmt.Errorf("%s: %s", resp.Status, firstOf(answer.Detail, answer.Code))
	return resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusTooManyRequests, err
}

// stackOutputs is what the local stack knows of its machine; apps read it as
// .nuon.install_stack.outputs.
func stackOutputs(dir string) map[string]any {
	hostname, _ := os.Hostname() // "" when the machine has none
	name := ""
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	machine, _ := os.ReadFile("/etc/machine-id") // not on every system
	return map[string]any{
		"install_dir": filepath.Join(dir, "install"),
		"hostname":    hostname,
		"machine_id":  firstOf(string(machine), hostname),
		"os":          runtime.GOOS,
		"arch":        runtime.GOARCH,
		"user":        name,
	}
}
