package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// modelSlice is how long the slice of every run of the tests takes.
	modelSlice = 10 * time.Second
	// modelRest is within which everything that is open comes to its end.
	modelRest = 4 * time.Minute
)

// TestModel lets people do anything at any time, in any order, while services, the agent
// and engines are killed: deploys, inputs, toggles, actions, decisions of every kind,
// cancels, retries, skips, rollbacks, removals. After each operation the invariants of
// laws hold; at the end everything comes to rest with nothing held, nothing waits without
// a reason, and all can be removed.
//
// A run of every test takes a slice of it. BERTH_MODEL_SECONDS, BERTH_MODEL_SEED and
// BERTH_MODEL_REPORT, a file that gets a line of the outcome, are for long runs. The seed
// says what is tried and when; what it meets also follows from the machine.
func TestModel(t *testing.T) {
	t.Parallel()
	m := &model{
		faults: &faults{seed: uint64(number(t, "BERTH_MODEL_SEED", 1)), struck: map[string]int{}},
		during: time.Duration(number(t, "BERTH_MODEL_SECONDS", int(modelSlice/time.Second))) * time.Second,
		did:    map[string]int{},
	}
	m.system = at(t, home(t), executables(t))
	m.rng = rand.New(rand.NewPCG(m.seed, 1))
	m.begin()
	m.db = m.database()
	for i := range 2 {
		m.installs = append(m.installs, m.victim(fmt.Sprintf("acme-%d", i+1), "model"))
	}
	for end := time.Now().Add(m.during); time.Now().Before(end) && !t.Failed(); {
		v := m.installs[m.rng.IntN(len(m.installs))]
		op := m.draw()
		said := op.do(m, v)
		if said != "" {
			m.did[op.name]++
			t.Logf("%s: %s: %s", v.name, op.name, said)
		}
		m.laws()
		time.Sleep(time.Duration(m.rng.IntN(400)) * time.Millisecond)
	}
	m.rest()
	m.tell()
}

// model is one run.
type model struct {
	*faults
	rng    *rand.Rand
	db     *pgxpool.Pool
	during time.Duration
	did    map[string]int
	killed time.Time // the last time
}

// operation is something that somebody does, or that happens. It says what was done, ""
// when there was nothing to do it to.
type operation struct {
	name   string
	weight int
	do     func(*model, *victim) string
}

var operations = []operation{
	{"deploy", 6, func(m *model, v *victim) string {
		args := []string{"deploy", v.name, "--confirm", v.name}
		if c := m.oneOf("", "a", "b", "c"); c != "" {
			args[1] += "/" + c
		}
		return m.byCommand(append(args, m.flags("--with-dependents")...)...)
	}},
	{"plan", 1, func(m *model, v *victim) string { return m.byCommand("deploy", v.name, "--plan", "--timeout", "20s") }},
	{"input", 5, func(m *model, v *victim) string {
		args := []string{"installs", "inputs", v.name, "--set", fmt.Sprintf("text=%d", m.rng.IntN(4))}
		return m.byCommand(append(args, m.flags("--apply")...)...)
	}},
	{"break", 2, func(m *model, v *victim) string {
		return m.byCommand("installs", "inputs", v.name, "--set", "broken="+m.oneOf("yes", "no"))
	}},
	{"toggle", 2, func(m *model, v *victim) string {
		return m.byCommand("installs", "toggle", v.name, "c", m.oneOf("on", "off"))
	}},
	{"action", 2, func(m *model, v *victim) string {
		return m.byCommand("actions", "run", v.name, m.oneOf("note", "alive"))
	}},
	{"reprovision", 1, func(m *model, v *victim) string {
		return m.byCommand(append([]string{"installs", "reprovision", v.name, "--confirm", v.name}, m.flags("--sandbox")...)...)
	}},
	{"teardown", 1, func(m *model, v *victim) string {
		return m.byCommand("installs", "teardown", v.name, m.oneOf("a", "b", "c"), "--confirm", v.name)
	}},
	{"rollback", 2, func(m *model, v *victim) string { return m.byCommand("rollback", v.name, "--confirm", v.name) }},
	{"approve", 12, func(m *model, v *victim) string { return m.decide(v, "approve", "--auto-approve") }},
	{"approve all", 3, func(m *model, v *victim) string {
		return m.ofWorkflow(v, open, func(w string) string { return m.byCommand("approve", "--all", w, "--auto-approve") })
	}},
	{"deny", 2, func(m *model, v *victim) string { return m.decide(v, "deny") }},
	{"deny and skip", 2, func(m *model, v *victim) string { return m.decide(v, "deny", m.oneOf("--skip", "--skip-dependents")) }},
	{"plan again", 2, func(m *model, v *victim) string { return m.decide(v, "changes", "plan-again") }},
	{"cancel", 1, func(m *model, v *victim) string {
		return m.ofWorkflow(v, open, func(w string) string { return m.byCommand("workflows", "cancel", w) })
	}},
	{"retry", 4, func(m *model, v *victim) string {
		return m.ofWorkflow(v, failed, func(w string) string { return m.byCommand("retry", w) })
	}},
	{"skip", 1, func(m *model, v *victim) string {
		return m.ofWorkflow(v, failed, func(w string) string { return m.byCommand("skip", w) })
	}},
	{"sync", 1, func(m *model, v *victim) string {
		file := filepath.Join(v.app, "components", "c.toml")
		raw, err := os.ReadFile(file)
		if err != nil {
			m.t.Fatal(err)
		}
		text := string(raw)
		from := strings.Index(text, "value  = ")
		to := from + strings.Index(text[from:], "\n")
		text = text[:from] + fmt.Sprintf("value  = \"v%d\"", m.rng.IntN(5)) + text[to:]
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
		return m.byCommand("sync", v.app, "--app", v.appName)
	}},
	{"kill", 3, func(m *model, _ *victim) string {
		name, err := m.one(m.oneOf("engine", "agent", "ctl-api", "runner-api", "log-ingest"), m.rng.IntN(1<<20), 0)
		if err != nil {
			return ""
		}
		m.killed = time.Now()
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

// flags are some of the flags.
func (m *model) flags(all ...string) (some []string) {
	for _, f := range all {
		if m.rng.IntN(3) == 0 {
			some = append(some, f)
		}
	}
	return some
}

// byCommand asks by the command line. A refusal is an answer; a fault of the control plane is
// none, unless something was killed just now.
func (m *model) byCommand(args ...string) string {
	_, errOut, code := m.run(args...)
	line, _, _ := strings.Cut(strings.TrimSpace(errOut), "\n")
	if strings.Contains(errOut, "internal error") && time.Since(m.killed) > 20*time.Second {
		m.t.Errorf("berth %s: exit %d: %s", strings.Join(args, " "), code, errOut)
	}
	return fmt.Sprintf("%s → %d %s", strings.Join(args, " "), code, line)
}

func (m *model) decide(v *victim, args ...string) string {
	var page ctlapi.ChangePage
	if err := m.insist(http.MethodGet, "/changes?limit=200&state=proposed&install="+v.name, "", nil, &page); err != nil {
		m.t.Fatal(err)
	}
	if len(page.Items) == 0 {
		return ""
	}
	c := page.Items[m.rng.IntN(len(page.Items))]
	verbs := 1
	if args[0] == "changes" {
		verbs = 2
	}
	return m.byCommand(slices.Insert(slices.Clone(args), verbs, c.ID)...)
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

func (m *model) ofWorkflow(v *victim, which func(ctlapi.Workflow) bool, do func(id string) string) string {
	some := slices.DeleteFunc(m.workflows(v), func(w ctlapi.Workflow) bool { return !which(w) })
	if len(some) == 0 {
		return ""
	}
	return do(some[m.rng.IntN(min(len(some), 3))].ID)
}

// laws are what must be so at every moment, as queries that find what breaks them.
var laws = map[string]string{
	"two attempts on one resource": `select j.resource_id from berth.leases l join berth.runner_jobs j on j.id = l.job_id
		where l.state = 'active' and j.mutates and j.resource_id is not null group by 1 having count(*) > 1`,
	"an apply of what nobody approved": `select id from berth.changes
		where apply_job_id is not null and kind <> 'forget' and approved_effect_digest is distinct from effect_digest`,
	"an apply without a decision": `select c.id from berth.changes c where c.apply_job_id is not null
		and not exists (select from berth.decisions d where d.change_id = c.id and d.answer = 'approve' and d.effect_digest = c.effect_digest)`,
	"an apply of what was denied": `select c.id from berth.changes c join berth.decisions d on d.change_id = c.id
		where c.apply_job_id is not null and d.answer <> 'approve'`,
	"a lock of a change that is not executing": `select r.id from berth.resources r join berth.changes c on c.id = r.locked_by where c.state <> 'executing'`,
	"a tick that ran twice": `select install_id || ' ' || action || ' ' || scheduled_at from berth.action_runs
		where scheduled_at is not null group by install_id, action, scheduled_at having count(*) > 1`,
	"an ended workflow with open steps": `select w.id from berth.workflows w join berth.steps s on s.workflow_id = w.id
		where w.state in ('succeeded', 'cancelled') and s.state in ('running', 'waiting')`,
}

func (m *model) laws() {
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	for law, query := range laws {
		rows, err := m.db.Query(ctx, query)
		if err != nil {
			m.t.Fatalf("%s: %v", law, err)
		}
		for rows.Next() {
			var what *string
			if err := rows.Scan(&what); err != nil {
				m.t.Fatal(err)
			}
			m.t.Errorf("%s: %s", law, cmp.Or(*what, "?"))
		}
		if err := rows.Err(); err != nil {
			m.t.Fatal(err)
		}
	}
}

// rest approves what still waits, and looks at what is left when all has ended. In the
// end everything is removed.
func (m *model) rest() {
	for _, v := range m.installs {
		m.t.Logf("%s comes to rest", v.name)
		m.settle(v)
		m.byCommand("installs", "inputs", v.name, "--set", "broken=no")
		m.insistOn(v, "deploy", v.name, "--confirm", v.name)
		m.insistOn(v, "installs", "deprovision", v.name, "--confirm", v.name)
		for _, e := range v.effects() {
			if strings.HasPrefix(e, "DOUBLE") {
				m.t.Errorf("%s: two engines at once: %s", v.name, e)
			}
		}
		m.chainHolds(v)
	}
	m.laws()
	m.nothingIsHeld()
	m.nobodyIsDisputed()
}

// settle waits until no workflow of an install is open, and approves what they propose.
// What waits says why.
func (m *model) settle(v *victim) {
	m.eventually(modelRest, v.name+" comes to rest", func() error {
		var left []string
		for _, w := range m.workflows(v) {
			if !open(w) {
				continue
			}
			if w.State == "waiting" {
				var why ctlapi.Why
				if err := m.insist(http.MethodGet, "/why/"+w.ID, "", nil, &why); err != nil {
					return err
				}
				if now := m.flow(w.ID); now.State == "waiting" && len(why.Items) == 0 {
					m.t.Errorf("workflow %s waits without a reason: %s", w.ID, v.explain(now))
				}
				m.run("approve", "--all", w.ID, "--auto-approve")
			}
			left = append(left, v.explain(m.flow(w.ID)))
		}
		if len(left) > 0 {
			return errors.New(strings.Join(left, "; "))
		}
		return nil
	})
}

// insistOn asks for a workflow and retries what fails: nothing is broken any more.
func (m *model) insistOn(v *victim, args ...string) {
	m.t.Log(m.byCommand(args...))
	for try := 0; ; try++ {
		m.settle(v)
		last := m.workflows(v)[0]
		if last.State == "succeeded" {
			return
		}
		if try == 5 {
			m.t.Fatalf("%s: %s: %s", strings.Join(args, " "), last.State, v.explain(m.flow(last.ID)))
		}
		m.t.Logf("again: %s", v.explain(m.flow(last.ID)))
		m.t.Log(m.byCommand("retry", last.ID))
	}
}

// tell reports what the run did, and adds it to a file when one is wanted.
func (m *model) tell() {
	var did []string
	all := 0
	for _, op := range operations {
		did = append(did, fmt.Sprintf("%s %d", op.name, m.did[op.name]))
		all += m.did[op.name]
	}
	outcome := "held"
	if m.t.Failed() {
		outcome = "FAILED"
	}
	line := fmt.Sprintf("| %d | %s | %d | %s | %s |", m.seed, m.during, all, strings.Join(did, ", "), outcome)
	m.t.Logf("| seed | time | operations | of these | outcome |\n%s", line)
	if all == 0 {
		m.t.Error("nothing was done")
	}
	addLine(m.t, os.Getenv("BERTH_MODEL_REPORT"), line)
}
