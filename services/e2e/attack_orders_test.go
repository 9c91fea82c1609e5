package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/id"
)

// TestAttackOrders writes jobs into the database of the control plane, as
// somebody who has it and not its keys: no script runs, and the install's own
// chain says that it was tried.
func TestAttackOrders(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	victim := filepath.Join(in.files, "script-ran")
	const columns = `(id, org_id, runner_id, install_id, kind, operation, mutates, state, spec, signed_order, timeout_seconds)`
	// spec is that of a check: it reads only, by its own word.
	spec := func(job string) string {
		org := column(t, db, `select org_id from berth.installs where id = $1`, in.id)[0]
		return fmt.Sprintf(`{"version":1,"job_id":%q,"org_id":%q,"install_id":%q,"kind":"action","operation":"run","timeout_seconds":60,
			"action":{"name":"check","read_only":true,"steps":[{"name":"one","inline_contents":"touch %s"}]}}`, job, org, in.id, victim)
	}
	refused := func(what, job string, attempt int) {
		t.Helper()
		s.eventually(time.Minute, what+" is refused", func() error {
			return in.expect(db, `select state || ' ' || attempt from berth.runner_jobs where id = $1`, job, fmt.Sprintf("refused %d", attempt))
		})
		if _, err := os.Stat(victim); err == nil {
			t.Fatalf("%s: the script ran", what)
		}
		s.eventually(time.Minute, what+" is in the chain", func() error {
			raw, err := os.ReadFile(filepath.Join(in.runnerDir(), "chain.jsonl"))
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(raw)) {
				if strings.Contains(line, `"job":"`+job+`"`) && strings.Contains(line, `"result":"refused"`) {
					return nil
				}
			}
			return errors.New("no record names it")
		})
	}

	plain := id.New(id.Job)
	exec(`insert into berth.runner_jobs `+columns+` select $1, org_id, $2, id, 'action', 'run', false, 'queued', $3, null, 60 from berth.installs where id = $4`,
		plain, in.runner, spec(plain), in.id)
	exec(`select pg_notify('berth_jobs', $1)`, in.runner)
	refused("a script without an order", plain, 1)

	// A good order of a plan, under which another job is put.
	borrowed := id.New(id.Job)
	exec(`insert into berth.runner_jobs `+columns+` select $1, org_id, runner_id, install_id, 'action', 'run', false, 'queued', $3, signed_order, 60
		from berth.runner_jobs where install_id = $2 and operation = 'plan' limit 1`, borrowed, in.id, spec(borrowed))
	exec(`select pg_notify('berth_jobs', $1)`, in.runner)
	refused("a script under the order of a plan", borrowed, 1)

	// A job that has ended is queued again, as it is, with its own order.
	ended := column(t, db, `select id from berth.runner_jobs where install_id = $1 and operation = 'plan' and state = 'succeeded' limit 1`, in.id)[0]
	exec(`update berth.runner_jobs set state = 'queued', result = null where id = $1`, ended)
	exec(`select pg_notify('berth_jobs', $1)`, in.runner)
	refused("an ended job", ended, 2)

	// The builder's own jobs go on: its key is its own.
	in.change("after the attacks")
	if got := in.finished(in.deploy(true, "one").ID, 2*time.Minute); got.State != "succeeded" {
		t.Fatalf("the deploy after it: %s", in.explain(got))
	}
	if info, err := os.Stat(filepath.Join(s.dir, "builder", "orders.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key of builder's orders: %v, %v", info, err)
	}
	if keys := column(t, db, `select purpose || ' ' || (private_sealed is not null) from berth.keys where purpose like '%build%'`); len(keys) != 0 {
		t.Errorf("the database has keys of builder: %s", strings.Join(keys, ", "))
	}
}
