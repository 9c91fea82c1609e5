package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// lawsLook is how far back the laws look after an operation; in every lawsAll of them,
	// and at the end, they look at everything.
	lawsLook = 10 * time.Minute
	lawsAll  = 100
)

// laws are what must be so at every moment, as queries that find what breaks them. They look
// at what is younger than $1.
var laws = map[string]string{
	"two attempts on one resource": `select j.resource_id from berth.leases l join berth.runner_jobs j on j.id = l.job_id
		where l.state in ('active', 'lost') and j.mutates and j.resource_id is not null and $1 < now() group by 1 having count(*) > 1`,
	"an apply of what nobody approved": `select id from berth.changes
		where apply_job_id is not null and kind <> 'forget' and approved_effect_digest is distinct from effect_digest and created_at > $1`,
	"an apply without a decision": `select c.id from berth.changes c where c.apply_job_id is not null and c.created_at > $1
		and not exists (select from berth.decisions d where d.change_id = c.id and d.answer = 'approve' and d.effect_digest = c.effect_digest)`,
	"an apply of what was denied": `select c.id from berth.changes c join berth.decisions d on d.change_id = c.id
		where c.apply_job_id is not null and d.answer <> 'approve' and c.created_at > $1`,
	"an approval kept over a changed effect": `select c.id from berth.decisions d join berth.changes c on c.id = d.change_id
		where d.rule = 'kept' and c.created_at > $1 and not exists (select from berth.decisions o join berth.changes oc on oc.id = o.change_id
			where oc.origin_id = c.origin_id and o.rule <> 'kept' and o.answer = 'approve' and o.effect_digest = d.effect_digest)`,
	"a lock of a change that is not executing": `select r.id from berth.resources r join berth.changes c on c.id = r.locked_by where c.state <> 'executing' and $1 < now()`,
	"a change that executes without its lock": `select c.id from berth.changes c join berth.resources r on r.id = c.resource_id
		where c.state = 'executing' and r.locked_by is distinct from c.id and c.created_at > $1`,
	"a tick that ran twice": `select install_id || ' ' || action || ' ' || scheduled_at from berth.action_runs
		where scheduled_at > $1 group by install_id, action, scheduled_at having count(*) > 1`,
	"a tick that was lost": `select install_id || ' ' || action || ' between ' || before || ' and ' || scheduled_at from (
			select install_id, action, scheduled_at, lag(scheduled_at) over (partition by install_id, action order by scheduled_at) as before
			from berth.action_runs where action = 'alive' and trigger = 'cron' and scheduled_at > $1) ticks
		where scheduled_at - before > interval '1 minute' and scheduled_at < now() - interval '5 minutes'
		and not exists (select from berth.settings_versions v where v.install_id = ticks.install_id and v.created_at > before and v.created_at < scheduled_at
			and not convert_from(decode(v.envelope->>'payload', 'base64'), 'utf8')::jsonb -> 'schedule' @> '[{"action": "alive"}]')`, // a deprovision began
	"an ended workflow with open steps": `select w.id from berth.workflows w join berth.steps s on s.workflow_id = w.id
		where w.state in ('succeeded', 'cancelled') and s.state in ('running', 'waiting') and w.created_at > $1`,
	"a workflow that nothing moves": `select w.id from berth.workflows w where w.state in ('queued', 'running', 'waiting') and $1 < now()
		and not exists (select from berth.steps s where s.workflow_id = w.id and s.state = 'waiting' and s.wait_deadline is not null)
		and not exists (select from berth.runner_jobs j where j.workflow_id = w.id and j.state in ('queued', 'leased'))
		and not exists (select from river_ctl.river_job j where j.state in ('available', 'running', 'retryable', 'pending')
			and (j.args->>'workflow_id' = w.id or j.args->>'install_id' = w.install_id))`,
}

// breaks notes that something broke a law; the run ends.
func (m *model) breaks(law, what string) {
	m.t.Errorf("%s: %s", law, what)
	if !slices.Contains(m.broken, law) {
		m.broken = append(m.broken, law)
	}
}

// laws checks all of them.
func (m *model) laws() {
	since := time.Now().Add(-lawsLook)
	if m.checks++; m.checks%lawsAll == 0 {
		since = time.Time{}
	}
	m.lawsOfRows(since)
	m.everythingOpenSaysWhy()
	for _, s := range m.sites {
		m.lawsOfRunner(s)
	}
	m.lawsOfLogs()
	m.lawOfArguments()
}

func (m *model) lawsOfRows(since time.Time) {
	for law, query := range laws {
		for _, what := range m.column(query, since) {
			m.breaks(law, what)
		}
	}
}

// column is the only column of an answer.
func (m *model) column(query string, args ...any) []string {
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	rows, err := m.db.Query(ctx, query, args...)
	if err != nil {
		m.t.Fatalf("%v: %s", err, query)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[*string])
	if err != nil {
		m.t.Fatalf("%v: %s", err, query)
	}
	var texts []string
	for _, text := range all {
		if text == nil {
			text = new(string)
		}
		texts = append(texts, cmp.Or(*text, "?"))
	}
	return texts
}

// openThings are what was accepted and has not ended.
const openThings = `select id from berth.workflows where state in ('queued', 'running', 'waiting')
	union all select id from berth.steps where state in ('running', 'waiting')
	union all select id from berth.changes where state in ('preparing', 'proposed', 'approved', 'executing')
	union all select id from berth.runner_jobs where state in ('queued', 'leased') and build_id is null`

// everythingOpenSaysWhy asks of one thing that is open why it is, and who can end that.
func (m *model) everythingOpenSaysWhy() {
	all := m.column(openThings)
	if len(all) == 0 {
		return
	}
	id := all[m.rng.IntN(len(all))]
	var why ctlapi.Why
	if err := m.insist(http.MethodGet, "/why/"+id, "", nil, &why); err != nil {
		m.breaks("something open that cannot be asked why", err.Error())
	}
	if len(why.Items) == 0 && slices.Contains(m.column(openThings), id) {
		m.breaks("something that waits without a reason", id)
	}
}

// lawsOfRunner looks at what the runner and its engines have written since the last look.
// What it tells of each effect in its chain is what people approved.
func (m *model) lawsOfRunner(s *site) {
	if s.runner == "" {
		return
	}
	for line := range strings.Lines(string(m.news(filepath.Join(s.files, "effects")))) {
		if strings.HasPrefix(line, "DOUBLE") {
			m.breaks("two engines at once", s.name+": "+line)
		}
	}
	for line := range bytes.Lines(m.news(filepath.Join(s.runnerDir(), "chain.jsonl"))) {
		r, err := chain.ParseRecord(bytes.TrimSpace(line))
		if err != nil {
			m.breaks("a chain that cannot be read", err.Error())
			continue
		}
		if r.Kind != chain.Intent {
			continue
		}
		const approved = `select c.id from berth.changes c join berth.decisions d on d.change_id = c.id
			where c.apply_job_id = $1 and c.effect_digest = $2 and d.answer = 'approve' and d.effect_digest = $2`
		if len(m.column(approved, r.Job, r.Effect)) == 0 {
			m.breaks("an effect in the runner's chain that nobody approved", fmt.Sprintf("%s: %s of %s, effect %s", s.name, r.What, r.Job, r.Effect))
		}
	}
}

// lawsOfLogs looks at what the processes have logged since the last look.
func (m *model) lawsOfLogs() {
	logs, _ := filepath.Glob(filepath.Join(m.dir, "log", "*.log"))
	for _, log := range logs {
		name, data := filepath.Base(log), m.news(log)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "a wake-up was lost") {
				m.breaks("a lost wake-up", line)
			}
		}
		m.lookForSecrets(name, data)
	}
}

// lookForSecrets is about what somebody may see.
func (m *model) lookForSecrets(where string, data []byte) {
	s := search{found: map[string][]string{}}
	s.look(where, data)
	for _, at := range slices.Concat(s.found[canary], s.found[secretMarker]) {
		m.breaks("a secret that can be seen", at)
	}
}

// lawOfArguments looks at the arguments of all processes, which every user of a machine sees.
func (m *model) lawOfArguments() {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		args, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(args, []byte(canary)) && !bytes.Contains(args, []byte(secretMarker)) {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if bytes.Contains(append(args, environ...), []byte(m.dir)) {
			m.breaks("a secret that can be seen", "arguments of process "+strconv.Quote(string(args)))
		}
	}
}

// news is what was added to a file since it was asked for the last time; a file that was cut
// begins again. Only whole lines.
func (m *model) news(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil // it is not there yet, or no more
	}
	defer func() { _ = f.Close() }()
	at := m.read[path]
	if info, err := f.Stat(); err == nil && info.Size() < at {
		at = 0
	}
	data, err := io.ReadAll(io.NewSectionReader(f, at, 1<<40))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	m.read[path] = at + int64(len(data))
	return data
}
