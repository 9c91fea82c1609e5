package up

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// Engines of runner n run as firstEngineUID+n where the machine does not let
	// each job have a user; a uid is given once, so that nobody ever owns what a
	// forgotten runner left.
	firstEngineUID = 61000
	engineUIDs     = 500 // then come those of builder

	// The runner's default range of users, of which each job gets one.
	firstJobUID = 70000
	jobUIDs     = 4096

	runnerGrace = 40 * time.Second // engines come to a safe point

	runnerOrder = 10 // after the services

	// Exit codes of berth-runner after which starting it again is no use, or
	// worse: a machine that was replaced must stay away.
	exitRevoked    = 4
	exitEnrolment  = 5
	exitSuperseded = 6
)

// Order asks for a runner: the body of PUT /runners/{id}.
type Order struct {
	Kind            string        `json:"kind"`
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

// DispatchKey is a key whose orders the runner believes.
type DispatchKey struct {
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"`
}

// digest recognises a repeated order. It is a hash of random secrets, so it
// gives none of them away.
func (o Order) digest() string {
	data, _ := json.Marshal(o) // strings and numbers: cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// runner is one that is kept running.
type runner struct {
	keeper   *keeper
	registry *keeper            // nil without a cluster
	cancel   context.CancelFunc // ends its phone-home
}

func (r *runner) stop() {
	r.cancel()
	r.keeper.stop()
	if r.registry != nil {
		r.registry.stop()
	}
}

func (l Layout) runnerDir(id string) string { return filepath.Join(l.Runners(), id) }

func phoneHomeFile(dir string) string { return filepath.Join(dir, "secrets", "phone-home") }

// accept takes an order over: when it returns, all of it is on disk, and the
// runner is being started. The same order again changes nothing.
func (s *supervisor) accept(ctx context.Context, id string, order Order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return problem(nil, "start it again with berth up", "berth is stopping")
	}
	digest := order.digest()
	if known, ok := s.ledger.read().Runners[id]; ok && known.Order == digest {
		return nil
	}
	dir := s.Layout.runnerDir(id)
	if err := s.furnish(ctx, dir, id, order); err != nil {
		return onDisk(s.Layout.Dir, err)
	}
	var record RunnerRecord
	err := s.ledger.change(func(st *State) {
		record = RunnerRecord{
			Kind: order.Kind, OrgID: order.OrgID, InstallID: order.InstallID, Name: order.Name,
			StackVersion: order.StackVersion, RunnerAPIURL: order.RunnerAPIURL,
			Order: digest, EngineUID: st.Runners[id].EngineUID, RegistryPort: st.Runners[id].RegistryPort,
		}
		s.giveRegistry(ctx, st, &record)
		if record.EngineUID == 0 && os.Geteuid() == 0 {
			record.EngineUID = firstEngineUID + st.EngineUIDs%engineUIDs
			st.EngineUIDs++
		}
		st.Runners[id] = record
	})
	if err != nil {
		return err
	}
	if err := s.configure(dir, record); err != nil {
		return onDisk(s.Layout.Dir, err)
	}
	if running, ok := s.runners[id]; ok {
		running.stop() // the new order may have another secret or key
	}
	s.launch(ctx, id, record)
	return nil
}

// furnish writes what a runner finds in its directory at its first start.
func (s *supervisor) furnish(ctx context.Context, dir, id string, order Order) error {
	secrets := filepath.Join(dir, "secrets")
	for _, d := range []string{dir, secrets} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	trust := map[string]any{"dispatch_keys": order.DispatchKeys, "runner_api_url": order.RunnerAPIURL}
	if order.LogURL != "" {
		trust["log_url"] = order.LogURL
	}
	vouch := false
	if order.Kind == "install" {
		if err := onlyWarn(dir); err != nil {
			return err
		}
		key, vouched, err := s.recoveryKey(dir, id)
		if err != nil {
			return err
		}
		if key != nil {
			trust["recovery"] = key
		}
		if vouched != nil {
			trust["vouched"] = vouched
		}
		vouch = key != nil && vouched == nil
	}
	if err := writeJSON(filepath.Join(dir, "trust.json"), trust); err != nil {
		return err
	}
	if vouch {
		if err := s.vouch(ctx, dir, id); err != nil {
			return err
		}
	}
	for name, secret := range map[string]string{"enrolment": order.EnrolmentSecret, "phone-home": order.PhoneHomeSecret} {
		if secret == "" {
			continue
		}
		if err := writeFile(filepath.Join(secrets, name), []byte(secret+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// onlyWarn has the guardrails of a runner warn only: who tries Berth on one machine is vendor
// and customer in one. What somebody wrote there since stays.
func onlyWarn(dir string) error {
	path := filepath.Join(dir, "guardrails", "answers.json")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return writeJSON(path, map[string]any{"only_warn": true, "reason": "berth up: vendor and customer are one here"})
}

// configure writes the runner's own settings; there are none to write when its
// engines share our user.
func (s *supervisor) configure(dir string, r RunnerRecord) error {
	if r.EngineUID == 0 {
		return nil
	}
	return writeJSON(filepath.Join(dir, "config.json"), map[string]any{"engine_uid": r.EngineUID})
}

func (s *supervisor) runnerPart(id string, r RunnerRecord) Part {
	dir := s.Layout.runnerDir(id)
	env := map[string]string{}
	if s.onCluster(r) {
		env["BERTH_KUBECONFIG"] = s.cluster
	}
	if s.hasRegistry(r) {
		env["BERTH_REGISTRY_ADDRESS"] = onLoopback(r.RegistryPort)
	}
	return Part{
		Name:   "runner " + r.Name,
		Path:   filepath.Join(s.around.runners, exeRunner),
		Copies: s.around.copies(),
		Args:   []string{"--data", dir},
		Env:    s.around.env(env),
		Dir:    s.Layout.Shared,
		Log:    s.Layout.LogFile("runner-" + id),
		Polite: syscall.SIGTERM,
		Grace:  runnerGrace,
		Ready:  func(context.Context) error { return nil },
		Final:  []int{exitRevoked, exitEnrolment, exitSuperseded},
		Order:  runnerOrder,
	}
}

// launch starts a runner and, unless that is done, phones home for it. The
// caller holds s.mu.
func (s *supervisor) launch(ctx context.Context, id string, r RunnerRecord) {
	ctx, cancel := context.WithCancel(ctx)
	made := &runner{keeper: keep(s.quoted(s.runnerPart(id, r)), s.ledger, s.Say), cancel: cancel}
	if s.hasRegistry(r) {
		made.registry = keep(s.quoted(s.registryPart(id, r)), s.ledger, s.Say)
	}
	s.runners[id] = made
	s.Say(fmt.Sprintf("✓ runner        %s (%s)", r.Name, id))
	if r.PhonedHome {
		return
	}
	s.tasks.Add(1)
	go func() {
		defer s.tasks.Done()
		s.phoneHome(ctx, id, r)
	}()
}

// restoreRunners starts those of state.json.
func (s *supervisor) restoreRunners(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.ledger.read().Runners {
		if _, ok := s.runners[id]; !ok && !s.stopped {
			s.launch(ctx, id, r)
		}
	}
}

// remove stops a runner permanently. Its directory stays, under another name:
// the keys and the record of what was done in the install are the customer's.
func (s *supervisor) remove(id string) error {
	s.mu.Lock()
	running, ok := s.runners[id]
	delete(s.runners, id)
	s.mu.Unlock()
	if ok {
		running.stop()
	}
	if err := s.ledger.change(func(st *State) { delete(st.Runners, id) }); err != nil {
		return err
	}
	dir := s.Layout.runnerDir(id)
	if !fileExists(dir) {
		return nil
	}
	return onDisk(s.Layout.Dir, os.Rename(dir, fmt.Sprintf("%s.forgotten.%d", dir, time.Now().Unix())))
}

// statuses of all runners, by id.
func (s *supervisor) runnerStatuses() map[string]PartStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]PartStatus{}
	for id, r := range s.runners {
		out[id] = r.keeper.Status()
	}
	return out
}
