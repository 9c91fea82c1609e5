package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// operation is something that somebody does, or that happens. It says what was done, ""
// when there was nothing to do it to.
type operation struct {
	name   string
	weight int
	do     func(*model, *site) string
}

var operations = []operation{
	{"deploy", 8, func(m *model, s *site) string {
		w := ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, Confirm: s.name, ApproveAll: m.oneIn(3)}
		args := []string{"deploy", s.name, "--confirm", s.name}
		if c := m.oneOf("", "a", "b", "c"); c != "" {
			w.Components, args[1] = []string{c}, s.name+"/"+c
		}
		if m.oneIn(3) {
			w.WithDependents, args = true, append(args, "--with-dependents")
		}
		return m.start(s, args, w)
	}},
	{"plan", 2, func(m *model, s *site) string {
		w := ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, PlanOnly: true}
		if m.oneIn(3) {
			w.Kind, w.Components = ctlapi.WorkflowKindTeardown, []string{m.oneOf("b", "c")}
		}
		return m.byAPI("/installs/"+s.name+"/workflows", w)
	}},
	{"input", 5, func(m *model, s *site) string {
		args := []string{"installs", "inputs", s.name, "--set", fmt.Sprintf("text=%d", m.rng.IntN(4))}
		if m.oneIn(3) {
			args = append(args, "--apply")
		}
		return m.byCommand(args...)
	}},
	{"break", 2, func(m *model, s *site) string {
		return m.byCommand("installs", "inputs", s.name, "--set", "broken="+m.oneOf("yes", "no", "no"))
	}},
	{"toggle", 2, func(m *model, s *site) string {
		return m.byCommand("installs", "toggle", s.name, "c", m.oneOf("on", "off"))
	}},
	{"action", 2, func(m *model, s *site) string {
		action := m.oneOf("note", "alive")
		return m.start(s, []string{"actions", "run", s.name, action}, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindActionRun, Action: &action})
	}},
	{"secret", 2, func(m *model, s *site) string {
		if err := m.giveSecret(s); err != nil {
			return ""
		}
		m.accepted++
		return "the customer set another token"
	}},
	{"rotate", 1, func(m *model, s *site) string { return m.byCustomer(s, "secrets", "rotate", "made") }},
	{"sync secrets", 1, func(m *model, s *site) string {
		return m.start(s, []string{"installs", "sync-secrets", s.name}, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindSyncSecrets})
	}},
	{"reprovision", 1, func(m *model, s *site) string {
		w := ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindReprovision, Confirm: s.name, ApproveAll: m.oneIn(3)}
		args := []string{"installs", "reprovision", s.name, "--confirm", s.name}
		if m.oneIn(3) {
			w.Kind, args = ctlapi.WorkflowKindReprovisionSandbox, append(args, "--sandbox")
		}
		return m.start(s, args, w)
	}},
	{"teardown", 1, func(m *model, s *site) string {
		c := m.oneOf("a", "b", "c")
		return m.start(s, []string{"installs", "teardown", s.name, c, "--confirm", s.name},
			ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindTeardown, Components: []string{c}, Confirm: s.name, ApproveAll: m.oneIn(3)})
	}},
	{"rollback", 2, func(m *model, s *site) string {
		return m.start(s, []string{"rollback", s.name, "--confirm", s.name}, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindRollback, Confirm: s.name, ApproveAll: m.oneIn(3)})
	}},
	{"approve", 16, func(m *model, s *site) string {
		return m.decide(s, []string{"approve", "", "--auto-approve"}, ctlapi.DecisionRequest{Answer: ctlapi.DecisionAnswerApprove})
	}},
	{"approve all", 4, func(m *model, s *site) string {
		return m.ofWorkflow(s, open, func(w string) string {
			return m.either([]string{"approve", "--all", w, "--auto-approve"}, "/workflows/"+w+"/approve-all", ctlapi.ApproveAllRequest{})
		})
	}},
	{"deny", 2, func(m *model, s *site) string {
		return m.decide(s, []string{"deny", ""}, ctlapi.DecisionRequest{Answer: ctlapi.DecisionAnswerDeny})
	}},
	{"deny and skip", 2, func(m *model, s *site) string {
		then, flag := ctlapi.DecisionRequestThenSkip, "--skip"
		if m.oneIn(2) {
			then, flag = ctlapi.DecisionRequestThenSkipDependents, "--skip-dependents"
		}
		return m.decide(s, []string{"deny", "", flag}, ctlapi.DecisionRequest{Answer: ctlapi.DecisionAnswerDeny, Then: &then})
	}},
	{"plan again", 2, func(m *model, s *site) string {
		return m.decide(s, []string{"changes", "plan-again", ""}, ctlapi.DecisionRequest{Answer: ctlapi.DecisionAnswerPlanAgain})
	}},
	{"cancel", 1, func(m *model, s *site) string {
		return m.ofWorkflow(s, open, func(w string) string {
			return m.either([]string{"workflows", "cancel", w}, "/workflows/"+w+"/cancel", nil)
		})
	}},
	{"retry", 5, func(m *model, s *site) string {
		return m.ofFailedStep(s, func(w, step string) string { return m.either([]string{"retry", w}, "/steps/"+step+"/retry", nil) })
	}},
	{"skip", 1, func(m *model, s *site) string {
		return m.ofFailedStep(s, func(w, step string) string { return m.either([]string{"skip", w}, "/steps/"+step+"/skip", nil) })
	}},
	{"sync", 1, func(m *model, s *site) string { return m.syncAgain(s, nil) }},
	{"prune", 1, func(m *model, s *site) string { return m.syncAgain(s, []string{m.oneOf("b", "c")}) }},
	{"remove orphans", 2, func(m *model, s *site) string {
		if len(s.pruned) == 0 {
			return ""
		}
		return m.start(s, []string{"installs", "teardown", s.name, "--orphans", "--confirm", s.name},
			ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindRemoveOrphans, Confirm: s.name})
	}},
	{"deprovision", 1, func(m *model, s *site) string {
		if !m.oneIn(3) {
			return ""
		}
		return m.start(s, []string{"installs", "deprovision", s.name, "--confirm", s.name},
			ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeprovision, Confirm: s.name, ApproveAll: m.oneIn(2)})
	}},
	{"provision", 2, func(m *model, s *site) string {
		if state := m.state(s); state == ctlapi.InstallStateLive || state == ctlapi.InstallStateDeprovisioning {
			return ""
		}
		return m.start(s, []string{"installs", "provision", s.name, "--confirm", s.name}, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindProvision, Confirm: s.name})
	}},
	{"another install", 4, func(m *model, s *site) string {
		if m.state(s) != ctlapi.InstallStateDeprovisioned || slices.ContainsFunc(m.workflows(s.victim), open) {
			return ""
		}
		before := s.name
		m.lawsOfRunner(s)
		if _, errOut, code := m.run("installs", "forget", s.name, "--confirm", s.name); code != 0 {
			return "forget → " + errOut
		}
		if err := m.create(s, false); err != nil {
			m.t.Fatal(err)
		}
		m.accepted++
		return "in the place of " + before
	}},
	{"pause", 1, func(m *model, s *site) string {
		if s.switched {
			return ""
		}
		return m.byCustomer(s, m.oneOf("pause", "read-only", "stop-now"), "--reason", "a freeze")
	}},
	{"resume", 5, func(m *model, s *site) string {
		if !s.switched {
			return ""
		}
		return m.byCustomer(s, "resume")
	}},
	{"kill", 3, func(m *model, _ *site) string {
		what := m.oneOf("engine", "engine", "agent", "ctl-api", "runner-api", "log-ingest", "builder", "build runner")
		name, err := m.one(what, m.rng.IntN(1<<20), 0)
		if err != nil {
			return ""
		}
		m.killed = time.Now()
		m.accepted++
		return name
	}},
}

func (m *model) draw() operation {
	all := 0
	for _, op := range operations {
		all += op.weight
	}
	n := m.rng.IntN(all)
	for _, op := range operations {
		if n -= op.weight; n < 0 {
			return op
		}
	}
	panic("unreachable")
}

func (m *model) oneOf(choices ...string) string { return choices[m.rng.IntN(len(choices))] }

func (m *model) oneIn(n int) bool { return m.rng.IntN(n) == 0 }

// restartTime is within which what was killed answers again.
const restartTime = 20 * time.Second

// byCommand asks by the command line. A refusal is an answer; a fault of the control plane is
// none, unless something was killed just now.
func (m *model) byCommand(args ...string) string {
	_, errOut, code := m.run(args...)
	line, _, _ := strings.Cut(strings.TrimSpace(errOut), "\n")
	if strings.Contains(errOut, "internal error") && time.Since(m.killed) > restartTime {
		m.breaks("a fault of the control plane", fmt.Sprintf("berth %s: exit %d: %s", strings.Join(args, " "), code, errOut))
	}
	if code == 0 {
		m.accepted++
	}
	return fmt.Sprintf("berth %s → %d %s", strings.Join(args, " "), code, line)
}

// byAPI asks by the API, with a POST.
func (m *model) byAPI(path string, body any) string {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			m.t.Fatal(err)
		}
	}
	status, answer, err := m.ask(http.MethodPost, path, "", raw, false)
	said := fmt.Sprintf("POST %s %s → ", path, raw)
	switch {
	case err != nil:
		return said + err.Error()
	case status >= 500 && time.Since(m.killed) > restartTime:
		m.breaks("a fault of the control plane", fmt.Sprintf("%s%d %s", said, status, answer))
	case status < 300:
		m.accepted++
		return fmt.Sprintf("%s%d", said, status)
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	_ = json.Unmarshal(answer, &problem) // what is no problem has no detail
	return fmt.Sprintf("%s%d %s", said, status, problem.Detail)
}

// either asks by the command line or, more often, by the API, which is quicker.
func (m *model) either(args []string, path string, body any) string {
	if m.oneIn(3) {
		return m.byCommand(args...)
	}
	return m.byAPI(path, body)
}

func (m *model) start(s *site, args []string, w ctlapi.WorkflowRequest) string {
	if w.ApproveAll { // the command line would stay until the end
		return m.byAPI("/installs/"+s.name+"/workflows", w)
	}
	return m.either(args, "/installs/"+s.name+"/workflows", w)
}

// byCustomer runs a command of the customer, on the runner's machine.
func (m *model) byCustomer(s *site, args ...string) string {
	if !m.hasRunner(s) {
		return ""
	}
	out, err := s.customer(args...)
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	said := "berth-runner " + strings.Join(args, " ") + " → " + line
	if err != nil {
		return said
	}
	m.accepted++
	if args[0] != "secrets" {
		s.switched = args[0] != "resume"
	}
	return said
}

// secretMarker is in every value of a secret that a customer sets here.
const secretMarker = "model-token+5d0c?not/for the vendor"

// giveSecret has the customer set another value of the token.
func (m *model) giveSecret(s *site) error {
	if !m.hasRunner(s) {
		return errors.New("it has no runner yet")
	}
	m.rotated++
	if out, err := s.setting("token", fmt.Sprintf("%s %d", secretMarker, m.rotated)).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// create makes an install of a site's app.
func (m *model) create(s *site, approveAll bool) error {
	m.made++
	s.name, s.runner, s.files, s.switched = fmt.Sprintf("acme-%d", m.made), "", "", false
	var made ctlapi.Install
	err := m.insist(http.MethodPost, "/installs", s.name, map[string]any{
		"name": s.name, "app": s.appName, "customer": s.name, "create_customer": true, "stack": "local",
		"inputs": ctlapi.InputValues{"canary": canary}, "provision": true, "approve_all": approveAll,
	}, &made)
	s.id = made.ID
	return err
}

// hasRunner tells whether the install's runner is there, and remembers it.
func (m *model) hasRunner(s *site) bool {
	if s.runner == "" {
		var stack ctlapi.Stack
		if err := m.insist(http.MethodGet, "/installs/"+s.name+"/stack", "", nil, &stack); err != nil || stack.Runner == nil {
			return false
		}
		s.runner = stack.Runner.ID
		s.files = filepath.Join(s.runnerDir(), "install", "probe")
	}
	_, err := os.Stat(filepath.Join(s.runnerDir(), "chain.jsonl"))
	return err == nil
}

func (m *model) state(s *site) ctlapi.InstallState {
	var in ctlapi.Install
	if err := m.insist(http.MethodGet, "/installs/"+s.name, "", nil, &in); err != nil {
		m.t.Fatal(err)
	}
	return in.State
}

// decide answers a change that is proposed. args has "" where the change's id goes.
func (m *model) decide(s *site, args []string, answer ctlapi.DecisionRequest) string {
	var page ctlapi.ChangePage
	if err := m.insist(http.MethodGet, "/changes?limit=200&state=proposed&install="+s.name, "", nil, &page); err != nil {
		m.t.Fatal(err)
	}
	if len(page.Items) == 0 {
		return ""
	}
	c := page.Items[m.rng.IntN(len(page.Items))]
	args[slices.Index(args, "")] = c.ID
	answer.EffectDigest = *c.EffectDigest
	return m.either(args, "/changes/"+c.ID+"/decisions", answer)
}

func open(w ctlapi.Workflow) bool {
	return w.State == "queued" || w.State == "running" || w.State == "waiting"
}

func failed(w ctlapi.Workflow) bool { return w.State == "failed" }

// workflows are those of an install, the newest first.
func (m *model) workflows(v *victim) []ctlapi.Workflow {
	var page ctlapi.WorkflowPage
	if err := m.insist(http.MethodGet, "/workflows?limit=30&install="+v.name, "", nil, &page); err != nil {
		m.t.Fatal(err)
	}
	return page.Items
}

func (m *model) flow(id string) (w ctlapi.Workflow) {
	if err := m.insist(http.MethodGet, "/workflows/"+id, "", nil, &w); err != nil {
		m.t.Fatal(err)
	}
	return w
}

func (m *model) ofWorkflow(s *site, which func(ctlapi.Workflow) bool, do func(id string) string) string {
	some := slices.DeleteFunc(m.workflows(s.victim), func(w ctlapi.Workflow) bool { return !which(w) })
	if len(some) == 0 {
		return ""
	}
	return do(some[m.rng.IntN(min(len(some), 3))].ID)
}

func (m *model) ofFailedStep(s *site, do func(workflow, step string) string) string {
	return m.ofWorkflow(s, failed, func(id string) string {
		for _, step := range m.flow(id).Steps {
			if step.State == "failed" {
				return do(id, step.ID)
			}
		}
		return ""
	})
}

// syncAgain syncs the site's app with another value, without the pruned components and
// with all others.
func (m *model) syncAgain(s *site, pruned []string) string {
	for _, c := range []string{"b", "c"} {
		name := filepath.Join("components", c+".toml")
		text, err := os.ReadFile(filepath.Join("testdata", "model", name))
		if err == nil {
			text = []byte(strings.ReplaceAll(string(text), `"alone"`, fmt.Sprintf(`"v%d"`, m.rng.IntN(5))))
			err = os.WriteFile(filepath.Join(s.app, name), text, 0o600)
		}
		if err == nil && slices.Contains(pruned, c) {
			err = os.Remove(filepath.Join(s.app, name))
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	said := m.byCommand("sync", s.app, "--app", s.appName, "--prune", "--confirm", s.appName)
	if strings.Contains(said, "→ 0 ") {
		s.pruned = pruned
	}
	return said
}
