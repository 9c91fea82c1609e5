package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// replaced are the parts whose executables have been replaced since they were
// started, and those that do not run at the moment but are tried again.
func replaced(keepers []*keeper, recorded map[string]PartRecord) (out []*keeper) {
	for _, k := range keepers {
		if !k.Status().GivenUp && recorded[k.part.Name].Digest != k.part.digest() {
			out = append(out, k)
		}
	}
	return out
}

// renew makes to a copy of from, unless it is one.
func renew(to, from string) error {
	if same, err := sameContents(from, to); err != nil || same {
		return err
	}
	return copyExecutable(from, to)
}

// restart starts the parts again whose executables have been replaced, each as
// soon as its old process is gone, and returns their names once they are ready.
// The schema is brought up to date before ctl-api. When a part cannot be used,
// its keeper goes on trying, and the error says why.
func (s *supervisor) restart(ctx context.Context) (names []string, err error) {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	s.mu.Lock()
	ready := s.started && !s.stopped
	s.mu.Unlock()
	if !ready {
		return nil, problem(nil, "wait until it is up, then try again", "berth is starting or stopping")
	}
	for to, from := range s.around.copies() {
		if err := renew(to, from); err != nil {
			return nil, onDisk(s.Layout.Shared, err)
		}
	}
	keepers := replaced(s.allKeepers(), s.ledger.read().Parts)
	if slices.ContainsFunc(keepers, func(k *keeper) bool { return k.part.Name == ctlAPIPart }) {
		if err := s.prepareDatabase(ctx); err != nil {
			return nil, err
		}
	}
	var group errgroup.Group // not of ctx: all of them are tried
	began := time.Now()
	for _, k := range keepers {
		names = append(names, k.part.Name)
		group.Go(func() error {
			if !k.restart(ctx) {
				return ctx.Err()
			}
			if err := k.waitReady(ctx, serviceStart); err != nil {
				return err
			}
			s.Say(fmt.Sprintf("✓ %-13s started again, %s", k.part.Name, took(began)))
			return nil
		})
	}
	return names, group.Wait()
}

// postRestart answers POST /restart.
func (s *supervisor) postRestart(w http.ResponseWriter, r *http.Request) {
	names, err := s.restart(r.Context())
	if err != nil {
		said := refusal{Detail: err.Error()}
		var known *Problem
		if errors.As(err, &known) {
			said.Remedy = known.Advice
		}
		answer(w, http.StatusServiceUnavailable, said)
		return
	}
	answer(w, http.StatusOK, Restarted{Parts: names})
}

// refusal is why a request was not carried out.
type refusal struct {
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Restarted names the parts that run a newer executable now.
type Restarted struct {
	Parts []string `json:"parts"`
}

// Restart has the supervisor of a data folder restart the parts whose executables
// have been replaced, and returns once they are ready; nothing else is stopped.
// The supervisor itself stays the older one. Without a supervisor, or when a part
// does not become ready, the error says what to do.
func Restart(ctx context.Context, l Layout) (Restarted, error) {
	resp, err := ask(ctx, l, http.MethodPost, "/restart")
	if err != nil {
		if ctx.Err() != nil {
			return Restarted{}, ctx.Err()
		}
		return Restarted{}, problem(err, "start it with berth up", "berth is not running (data in %s)", l.Dir)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		var said refusal
		if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || said.Detail == "" {
			said = refusal{Detail: "the supervisor answers " + resp.Status, Remedy: "berth up, which replaces an older supervisor"}
		}
		return Restarted{}, problem(nil, said.Remedy, "%s", said.Detail)
	}
	var done Restarted
	if err := json.NewDecoder(resp.Body).Decode(&done); err != nil {
		return done, fmt.Errorf("supervisor: %w", err)
	}
	return done, nil
}
