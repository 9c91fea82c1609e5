package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// colleague is a member with a token of their own.
type colleague struct {
	s           *system
	name, token string
}

func (s *system) colleague(name, role string) colleague {
	s.t.Helper()
	s.must("members", "create", name, "--role", role)
	return colleague{s, name, strings.TrimSpace(s.must("tokens", "create", "desk", "--member", name))}
}

// berth is what the colleague types; it answers all that it says.
func (c colleague) berth(args ...string) (string, int) {
	c.s.t.Helper()
	cmd := exec.CommandContext(c.s.t.Context(), filepath.Join(c.s.bin, "berth"), args...)
	cmd.Env = append(slices.Clone(c.s.env), "BERTH_URL="+c.s.api, "BERTH_TOKEN="+c.token)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		c.s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// approves has the colleague approve a change.
func (c colleague) approves(change ctlapi.Change) string {
	c.s.t.Helper()
	out, code := c.berth("approve", change.ID, "--auto-approve")
	if code != 0 {
		c.s.t.Fatalf("%s approves: exit %d\n%s", c.name, code, out)
	}
	return out
}

// TestApprovals is a story of people: two have to approve, not the one who asked;
// one loses the right while the install is paused, and nothing is applied; a freeze
// holds an approved change, which moves by itself when it ends.
func TestApprovals(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	bob, cid, dee := s.colleague("bob", "operator"), s.colleague("cid", "operator"), s.colleague("dee", "admin")
	s.must("approvals", "set", "--app", "probe", "--approvals", "2", "--no-self-approval", "--expires", "48h")
	if out, code := bob.berth("approvals", "set", "--install", "acme", "--approvals", "1"); code == 0 || !strings.Contains(out, "policies:write") {
		t.Errorf("an operator changes the policy: exit %d\n%s", code, out)
	}
	value := "v1"
	deploy := func(next string) (ctlapi.Workflow, ctlapi.Change) {
		t.Helper()
		edit(t, filepath.Join(in.app, "components", "one.toml"), `"`+value+`"`, `"`+next+`"`)
		value = next
		s.sync("probe", in.app)
		w := in.deploy(false, "one")
		return w, in.proposed(w.ID, "component/one")
	}
	waits := func(w ctlapi.Workflow, reason string) {
		t.Helper()
		in.eventually(time.Minute, "the deploy waits for "+reason, func() error {
			var why ctlapi.Why
			in.get("/workflows/"+w.ID+"/why", &why)
			for _, item := range why.Items {
				if string(item.Code) == reason {
					return nil
				}
			}
			return fmt.Errorf("why says %+v", why.Items)
		})
	}
	is := func(c ctlapi.Change, state ctlapi.ChangeState) (now ctlapi.Change) {
		t.Helper()
		in.eventually(time.Minute, "the change is "+string(state), func() error {
			in.get("/changes/"+c.ID, &now)
			if now.State != state {
				return fmt.Errorf("it is %s", now.State)
			}
			return nil
		})
		return now
	}

	w, change := deploy("v2")
	before := len(in.effects())
	if expires := change.ExpiresAt.Sub(*change.ProposedAt).Round(time.Hour); expires != 48*time.Hour {
		t.Errorf("the proposal expires after %s, want the app's 48h", expires)
	}
	if _, said, code := s.run("approve", change.ID, "--auto-approve"); code == 0 || !strings.Contains(said, "self-approval is off") {
		t.Errorf("who asked for it approves it: exit %d\n%s", code, said)
	}
	if out, _, code := s.run("approve", "--all", w.ID, "--auto-approve"); code == 0 {
		t.Errorf("a standing answer passes a policy that asks for people:\n%s", out)
	}
	if out := bob.approves(change); !strings.Contains(out, "1 of 2 approvals (bob); 1 more needed") {
		t.Errorf("after the first approval berth says\n%s", out)
	}
	for _, show := range [][]string{{"why", "acme"}, {"changes", "show", change.ID}} {
		if out := s.must(show...); !strings.Contains(out, "1 of 2 approvals (bob); 1 more needed") {
			t.Errorf("berth %s does not say what is missing:\n%s", strings.Join(show, " "), out)
		}
	}

	// The second approver loses the right while a pause keeps the change from being applied.
	s.must("installs", "pause", "acme", "--reason", "incident 4711")
	cid.approves(change)
	waits(w, "paused_by_vendor")
	if out := s.must("installs", "list", "--paused"); !strings.Contains(out, "acme") {
		t.Errorf("the paused install is not listed:\n%s", out)
	}
	s.must("members", "remove", "cid")
	s.must("installs", "resume", "acme")
	if c := is(change, "proposed"); c.Error == nil || !strings.Contains(*c.Error, "cid is no member any more") {
		t.Errorf("the change does not say whose approval counts no more: %v", c.Error)
	}
	if n := len(in.effects()); n != before {
		t.Errorf("something was applied: %d effects, were %d", n, before)
	}
	out, code := dee.berth("approve", "--install", "acme", "--auto-approve")
	if code != 0 || !strings.Contains(out, "approved") {
		t.Fatalf("dee approves all of the install: exit %d\n%s", code, out)
	}
	if w = in.finished(w.ID, 2*time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}

	// A freeze that begins before the last approval holds the change until it ends.
	w, change = deploy("v3")
	bob.approves(change)
	s.must("freezes", "add", "--app", "probe", "--reason", "Black Friday", "--for", "20s")
	dee.approves(change)
	waits(w, "freeze")
	if out := s.must("workflows", "show", w.ID); !strings.Contains(out, "a freeze holds until") || !strings.Contains(out, "Black Friday") {
		t.Errorf("the workflow does not show the freeze:\n%s", out)
	}
	if out, code := bob.berth("freezes", "override", w.ID, "--reason", "I want to"); code == 0 {
		t.Errorf("an operator overrides a freeze:\n%s", out)
	}
	if w = in.finished(w.ID, 2*time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	var freezes int
	var early bool
	err := s.database().QueryRow(t.Context(), `select count(*), bool_or(c.executed_at < f.ends_at) from berth.changes c, berth.freezes f where c.id = $1`, change.ID).Scan(&freezes, &early)
	if err != nil || freezes != 1 || early {
		t.Errorf("the change was carried out within the freeze: %v (%d freezes, %v)", early, freezes, err)
	}

	// The same for many, with a preview; and let through a freeze by an admin.
	if out := s.must("bulk", "pause", "--app", "probe", "--reason", "all of them", "--preview"); !strings.Contains(out, "acme") {
		t.Errorf("the preview shows\n%s", out)
	}
	s.must("bulk", "pause", "--app", "probe", "--reason", "all of them")
	paused := func(want bool) {
		t.Helper()
		in.eventually(time.Minute, fmt.Sprint("paused ", want), func() error {
			var i ctlapi.Install
			in.get("/installs/acme", &i)
			if (i.Pause != nil) != want {
				return fmt.Errorf("paused: %v", i.Pause != nil)
			}
			return nil
		})
	}
	paused(true)
	s.must("bulk", "resume", "--app", "probe")
	paused(false)
	w, change = deploy("v4")
	s.must("freezes", "add", "--install", "acme", "--reason", "nights", "--days", "mon,tue,wed,thu,fri,sat,sun", "--between", "00:00-00:00", "--zone", "Europe/Berlin")
	bob.approves(change)
	dee.approves(change)
	waits(w, "freeze")
	s.must("freezes", "override", w.ID, "--reason", "fixes the outage")
	if w = in.finished(w.ID, 2*time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}

	// All of it is told.
	seen := map[string]bool{}
	in.eventually(time.Minute, "the events are there", func() error {
		var page ctlapi.EventPage
		in.get("/events?install=acme&limit=500", &page)
		for _, e := range page.Items {
			seen[e.Kind] = true
		}
		for _, kind := range []string{"decision.made", "install.paused", "install.resumed", "freeze.added", "freeze.overridden"} {
			if !seen[kind] {
				return fmt.Errorf("no %s", kind)
			}
		}
		return nil
	})
}
