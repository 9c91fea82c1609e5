package e2e_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// modelSlice is how long the slice of every run of the tests takes.
	modelSlice = 25 * time.Second
	// modelPause is the longest pause between two operations.
	modelPause = 200 * time.Millisecond
	// modelInstalls is how many installs there are at a time.
	modelInstalls = 3
	// modelRest is within which everything that is open comes to its end.
	modelRest = 4 * time.Minute
)

// TestModel lets people do anything at any time, in any order, while services, agents
// and engines are killed: deploys, inputs, secrets, toggles, actions, decisions of every
// kind, cancels, retries, skips, rollbacks, components that a sync removes, installs that
// go and come, the customer's switch. After each operation the laws hold
// (model_laws_test.go); at the end everything comes to rest with nothing held, nothing waits
// without a reason, and all can be removed.
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
		read:   map[string]int64{},
	}
	m.system = at(t, home(t), executables(t))
	m.rng = rand.New(rand.NewPCG(m.seed, 1))
	m.begin()
	m.db = m.database()
	m.bringUp()
	began := time.Now()
	for end := began.Add(m.during); time.Now().Before(end) && len(m.broken) == 0; {
		s := m.sites[m.rng.IntN(len(m.sites))]
		op := m.draw()
		if said := op.do(m, s); said != "" {
			m.did[op.name]++
			t.Logf("%s: %s: %s", s.name, op.name, said)
		}
		m.laws()
		time.Sleep(time.Duration(m.rng.Int64N(int64(modelPause))))
	}
	m.during = time.Since(began).Round(time.Second)
	if len(m.broken) == 0 {
		m.rest()
	}
	m.tell()
}

// model is one run.
type model struct {
	*faults
	rng      *rand.Rand
	db       *pgxpool.Pool
	during   time.Duration
	sites    []*site
	made     int            // installs, for their names
	rotated  int            // values of secrets, for the next one
	did      map[string]int // operations, by name
	accepted int            // of them were not refused
	killed   time.Time      // the last time
	checks   int            // of the laws
	read     map[string]int64
	broken   []string // laws, with what broke them
}

// site is where an install is, now this one and later another one of the same app.
type site struct {
	*victim
	switched bool     // the customer's switch is not at run
	pruned   []string // components that the last sync removed
}

// bringUp makes the installs and gives them their secrets.
func (m *model) bringUp() {
	for range modelInstalls {
		v := &victim{install: &install{system: m.system, app: folder(m.t, "testdata/model")}}
		s := &site{victim: v}
		m.sites, m.installs = append(m.sites, s), append(m.installs, v)
		v.appName = fmt.Sprintf("model-%d", len(m.sites))
		m.sync(v.appName, v.app)
		if err := m.create(s, true); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, s := range m.sites {
		m.eventually(upTimeout, "the runner of "+s.name+" takes its secret", func() error { return m.giveSecret(s) })
		m.eventually(upTimeout, s.name+" is live", func() error {
			if state := m.state(s); state != ctlapi.InstallStateLive {
				return fmt.Errorf("it is %s", state)
			}
			return nil
		})
	}
}

// rest approves what still waits, and looks at what is left when all has ended. In the
// end everything is removed.
func (m *model) rest() {
	for _, s := range m.sites {
		if s.switched {
			m.t.Log(m.byCustomer(s, "resume"))
		}
		m.syncAgain(s, nil)
		m.eventually(modelRest, "the runner of "+s.name+" takes its secret", func() error { return m.giveSecret(s) })
	}
	for _, s := range m.sites {
		m.settle(s)
		m.byCommand("installs", "inputs", s.name, "--set", "broken=no")
		m.byCommand("installs", "toggle", s.name, "c", "on")
	}
	m.eventually(modelRest, "the apps are built", func() error {
		if left := m.column(`select id from berth.builds where state in ('queued', 'running')`); len(left) > 0 {
			return fmt.Errorf("builds %v", left)
		}
		return nil
	})
	m.insistOn(func(s *site) []string {
		if m.state(s) == ctlapi.InstallStateLive {
			return []string{"deploy", s.name, "--confirm", s.name}
		}
		return []string{"installs", "provision", s.name, "--confirm", s.name}
	})
	for _, s := range m.sites {
		if missing := m.column(`select name || ' ' || state from berth.resources where install_id = $1 and kind = 'component' and state <> 'live'`, s.id); len(missing) > 0 {
			m.breaks("a component that a deploy leaves behind", fmt.Sprint(missing))
		}
	}
	m.insistOn(func(s *site) []string { return []string{"installs", "deprovision", s.name, "--confirm", s.name} })
	for _, s := range m.sites {
		m.chainHolds(s.victim)
	}
	m.laws()
	m.lawsOfRows(time.Time{})
	m.nothingIsHeld()
	m.nobodyIsDisputed()
	all := &search{found: map[string][]string{}}
	searchDatabase(m.t, m.db, all)
	for _, at := range slices.Concat(all.found[canary], all.found[secretMarker]) {
		m.breaks("a secret that can be seen", at)
	}
}

// settle waits until no workflow of an install is open, and approves what they propose.
// What waits says why.
func (m *model) settle(s *site) {
	m.eventually(modelRest, s.name+" comes to rest", func() error {
		var left []string
		for _, id := range m.column(`select id from berth.workflows where install_id = $1 and state in ('queued', 'running', 'waiting')`, s.id) {
			w := m.flow(id)
			if w.State == "waiting" {
				var why ctlapi.Why
				if err := m.insist(http.MethodGet, "/why/"+w.ID, "", nil, &why); err != nil {
					return err
				}
				if now := m.flow(w.ID); now.State == "waiting" && len(why.Items) == 0 {
					m.breaks("something that waits without a reason", w.ID+": "+s.explain(now))
				}
				m.run("approve", "--all", w.ID, "--auto-approve")
			}
			left = append(left, s.explain(w))
		}
		if len(left) > 0 {
			return errors.New(strings.Join(left, "; "))
		}
		return nil
	})
}

// insistOn has all installs do something, and retries what fails: nothing is broken any
// more.
func (m *model) insistOn(args func(*site) []string) {
	asked := map[*site]string{}
	for _, s := range m.sites {
		asked[s] = m.byCommand(args(s)...)
		if m.t.Log(asked[s]); !strings.Contains(asked[s], "→ 0 ") {
			m.breaks("a request that is refused in the end", asked[s])
		}
	}
	for _, s := range m.sites {
		for try := 0; ; try++ {
			m.settle(s)
			last := m.workflows(s.victim)[0]
			if last.State == "succeeded" {
				break
			}
			if try == 5 {
				m.t.Fatalf("%s: %s: %s", asked[s], last.State, s.explain(m.flow(last.ID)))
			}
			m.t.Logf("again: %s", s.explain(m.flow(last.ID)))
			m.t.Log(m.byCommand("retry", last.ID))
		}
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
		outcome = "FAILED: " + strings.Join(m.broken, "; ")
	}
	came := m.column(`select 'workflows ' || state || ' ' || count(*) from berth.workflows group by state
		union all select 'changes ' || state || ' ' || count(*) from berth.changes group by state
		union all select 'jobs ' || count(*) from berth.runner_jobs
		union all select 'orphans removed ' || count(*) from berth.changes c join berth.workflows w on w.id = c.workflow_id
			where w.kind = 'remove_orphans' and c.state = 'applied'
		union all select 'ticks ' || count(*) || ', of them missed ' || count(*) filter (where state = 'missed') from berth.action_runs where trigger = 'cron'`)
	line := fmt.Sprintf("| %d | %s | %d | %d | %d | %s | %s | %s |", m.seed, m.during, all, m.accepted, m.made, strings.Join(did, ", "), strings.Join(came, ", "), outcome)
	m.t.Logf("| seed | time | operations | not refused | installs | of these | what came of them | outcome |\n%s", line)
	if all == 0 {
		m.t.Error("nothing was done")
	}
	addLine(m.t, os.Getenv("BERTH_MODEL_REPORT"), line)
}
