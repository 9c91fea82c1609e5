package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/imagetrust"
)

// phoneHome takes reports of a stack. The first one's answer is lost.
func (p *plane) phoneHome(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.PhoneHome](r)
	first := false
	p.change(func() {
		first = len(p.homes) == 0
		p.homes = append(p.homes, in)
	})
	if first {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	answer(w, http.StatusOK, runnerapi.StackActive{InstallID: p.installID, StackVersion: 1})
}

// newcomer is a runner with an empty directory, and the code for it.
func newcomer(t *testing.T) (*runner, enrolcode.Code) {
	t.Helper()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	trust, err := r.dir.LoadTrust()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{r.dir.Trust(), r.dir.Enrolment()} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	return r, enrolcode.Code{
		URL: r.plane.URL, OneHost: true, InstallID: r.plane.installID, Install: "acme",
		EnrolmentSecret: "ben_" + strings.Repeat("b", 43), PhoneHomeSecret: "bph_" + strings.Repeat("c", 43),
		DispatchKeys: []enrolcode.Key{{KeyID: r.dispatch.id, PublicKey: trust.DispatchKeys[0].PublicKey}},
		ExpiresAt:    time.Now().Add(time.Hour).UTC(),
	}
}

// with runs the agent with a code until ctx ends.
func (r *runner) with(ctx context.Context, t *testing.T, code enrolcode.Code) error {
	t.Helper()
	text, err := code.Encode()
	if err != nil {
		t.Fatal(err)
	}
	err = agent.Run(ctx, agent.Config{
		Data: r.dir.Path(), Engine: r.binary, Executable: r.binary, EngineUID: r.uid, Version: "1.2.0", Grace: 2 * time.Second,
		Code: text, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		fmt.Fprintln(t.Output(), "the agent ended:", err)
	}
	return err
}

// A code is all that a runner needs to begin, and it is used once: the stack is
// reported with the same words until that is answered, and never again. Logs go
// to the one address, whatever the session names.
func TestCode(t *testing.T) {
	t.Parallel()
	r, code := newcomer(t)
	for life := 1; life <= 2; life++ {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.with(ctx, t, code) }()
		r.begun = true
		r.plane.until(t, "the report of the stack", func() bool { return len(r.plane.homes) >= 2 })
		job := r.plane.give(script("print hello"))
		if got := r.plane.result(t, job); got.Outcome != jobspec.OutcomeSucceeded {
			t.Errorf("result = %+v", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
	}
	p := r.plane
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.enrolled) != 1 || p.enrolled[0].Secret != code.EnrolmentSecret {
		t.Errorf("enrolments: %+v", p.enrolled)
	}
	if len(p.homes) != 2 || p.homes[0].Secret != code.PhoneHomeSecret || !cmp.Equal(p.homes[0], p.homes[1]) || p.homes[0].Outputs["install_dir"] != r.dir.Install() {
		t.Errorf("reports of the stack: %+v", p.homes)
	}
	for _, path := range []string{r.dir.Enrolment(), r.dir.StackReport()} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	trust, err := r.dir.LoadTrust()
	if err != nil || !trust.OneHost || trust.RunnerAPIURL != code.URL || len(trust.DispatchKeys) != 1 {
		t.Errorf("trust: %+v, %v", trust, err)
	}
}

// A newer code for the same install moves an enrolled runner and reports its
// stack again; who the runner is stays.
func TestNewerCode(t *testing.T) {
	t.Parallel()
	r, code := newcomer(t)
	live := func(code enrolcode.Code, reports int) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.with(ctx, t, code) }()
		r.plane.until(t, "the report of the stack", func() bool { return len(r.plane.homes) >= reports })
		r.plane.until(t, "a claim", func() bool { return len(r.plane.asked) > 0 })
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	live(code, 2)
	public, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	// What the customer decided stays.
	trust, err := r.dir.LoadTrust()
	if err != nil {
		t.Fatal(err)
	}
	holder, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	vendor, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	trust.Consent = &consent.Config{Mode: consent.ModeEach, Holders: []consent.Holder{{Name: "ada", Keys: []string{capsule.EncodePublicKey(holder)}}}}
	trust.Vendor = &datadir.Vendor{AppID: vendorApp, Keys: []string{capsule.EncodePublicKey(vendor)}}
	trust.Images = []imagetrust.Rule{{Match: "*", Unsigned: true}}
	if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
		t.Fatal(err)
	}
	decided := trust
	newer := code
	newer.PhoneHomeSecret = "bph_" + strings.Repeat("d", 43)
	newer.DispatchKeys = []enrolcode.Key{{KeyID: "next", PublicKey: capsule.EncodePublicKey(public)}}
	live(newer, 3)
	if trust, err := r.dir.LoadTrust(); err != nil || trust.DispatchKeys[0].KeyID != "next" ||
		!cmp.Equal(trust.Consent, decided.Consent) || !cmp.Equal(trust.Vendor, decided.Vendor) || !cmp.Equal(trust.Images, decided.Images) {
		t.Errorf("trust: %+v, %v", trust, err)
	}
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	if len(r.plane.enrolled) != 1 || r.plane.homes[2].Secret != newer.PhoneHomeSecret {
		t.Errorf("enrolments %d, last report %+v", len(r.plane.enrolled), r.plane.homes[2])
	}
}

func TestCodeIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*runner, *enrolcode.Code){
		"one that is over": func(_ *runner, c *enrolcode.Code) { c.ExpiresAt = time.Now().Add(-time.Second).UTC() },
		"one of another install": func(r *runner, c *enrolcode.Code) {
			who := datadir.Runner{RunnerID: r.plane.runnerID, OrgID: r.plane.orgID, InstallID: "ins_other", Kind: "install"}
			if err := datadir.WriteJSON(r.dir.Runner(), who); err != nil {
				r.t.Fatal(err)
			}
		},
	} {
		r, code := newcomer(t)
		change(r, &code)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := r.with(ctx, t, code); !errors.Is(err, agent.ErrEnrolment) || strings.Contains(err.Error(), code.EnrolmentSecret) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if _, err := os.Stat(r.dir.Trust()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: its keys were pinned", name)
		}
	}
}
