package store_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// reach is what an attack with a stolen password comes to.
type reach string

const (
	refused reach = "refused"       // Postgres denies it
	nothing reach = "finds nothing" // the rows are not there for this role
	reached reach = "reached"       // it works: docs must name it
)

// attack is one thing that somebody with the password of a role tries: who logs
// in with it and no other secret, sets the org and runs SQL. what completes
// "With the password of … somebody can …" in docs/reference/database-roles.md.
type attack struct {
	what string
	sql  string // the last statement counts
	want reach
}

// stolen plays each role. Rows are those of testdata/stolen.sql.
var stolen = map[store.Role][]attack{
	store.RoleBuilder: {
		{"queue a job that applies, plans or runs something in an install", `insert into runner_jobs (id, org_id, runner_id, install_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_a', 'rnr_a', 'ins_a', 'script', 'run', '{"read_only":true}', 60)`, refused},
		{"queue a build at an install's runner", `insert into runner_jobs (id, org_id, runner_id, build_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_a', 'rnr_a', 'bld_a', 'script', 'build', '{}', 60)`, refused},
		{"queue a job that is no build at the Build Runner", `insert into runner_jobs (id, org_id, runner_id, build_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_a', 'rnr_a_build', 'bld_a', 'script', 'run', '{}', 60)`, refused},
		{"queue a build that names an install", `insert into runner_jobs (id, org_id, runner_id, build_id, install_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_a', 'rnr_a_build', 'bld_a', 'ins_a', 'script', 'build', '{}', 60)`, refused},
		{"queue a build with a capsule", `insert into runner_jobs (id, org_id, runner_id, build_id, kind, operation, spec, capsule, fence, mutates, timeout_seconds) values ('job_1', 'org_a', 'rnr_a_build', 'bld_a', 'script', 'build', '{}', '{}', 1, true, 60)`, refused},
		{"make a build's job into one of an install's runner", `update runner_jobs set runner_id = 'rnr_a'`, refused},
		{"change the operation of a job", `update runner_jobs set operation = 'run'`, refused},
		{"change the spec of a job", `update runner_jobs set spec = '{}'`, refused},
		{"end or cancel an install's job", `update runner_jobs set state = 'cancelled' where id = 'job_a'`, nothing},
		{"read what the jobs of installs came to", `select result from runner_jobs where id = 'job_a'`, nothing},
		{"read the specs of jobs", `select spec from runner_jobs`, refused},
		{"open an enrolment for an install's runner", `insert into enrolments (id, org_id, runner_id, secret_hash, replaces, created_by, expires_at) values ('enr_1', 'org_a', 'rnr_a', 'mine', true, 'x', now() + interval '1 hour')`, refused},
		{"make an install's enrolment valid again", `update enrolments set state = 'open' where runner_id = 'rnr_a'`, nothing},
		{"put a key of its own into a runner's row", `update runners set public_key = 'mine' where kind = 'install'`, refused},
		{"have secrets sealed to a recipient of its own", `update runners set seal_recipient = 'mine'`, refused},
		{"make another runner for an install", `insert into runners (id, org_id, install_id, kind, name) values ('rnr_1', 'org_a', 'ins_a_new', 'install', 'x')`, refused},
		{"make the Build Runner an install's", `update runners set kind = 'install', install_id = 'ins_a'`, refused},
		{"see the runners of installs", `select id from runners where kind = 'install'`, nothing},
		{"add a key of any purpose", `insert into keys (id, org_id, purpose, algorithm, key_id, public_key) values ('key_1', 'org_a', 'dispatch', 'ed25519', 'mine', 'mine')`, refused},
		{"retire a key or take one back into use", `update keys set retired_at = null`, refused},
		{"read private keys", `select private_sealed from keys`, refused},
		{"write a chain", `insert into chain_records (org_id, chain, seq, prev, hash, body) values ('org_a', 'org_a', 3, 'b', 'c', 'x')`, refused},
		{"publish settings", `insert into settings_versions (org_id, install_id, version, digest, envelope, expires_at) values ('org_a', 'ins_a', 2, 'd', '{}', now())`, refused},
		{"read inputs of installs", `select sealed from install_inputs`, refused},
		{"read variables of apps", `select sealed from app_variables`, refused},
		{"read Terraform states", `select body from tf_states`, refused},
		{"approve a change", `update changes set state = 'approved'`, refused},
		{"decide on a change", `insert into decisions (id, org_id, change_id, answer, effect_digest, actor) values ('dec_1', 'org_a', 'chg_a', 'approve', 'd', 'ann')`, refused},
		{"read tokens of people", `select hash from tokens`, refused},
		{"make a registry token in a runner's name", `insert into registry_tokens (hash, org_id, runner_id, actions, expires_at) values ('mine', 'org_a', 'rnr_a', '{push}', now())`, refused},
		{"take registry tokens away from runners", `delete from registry_tokens where runner_id is not null`, nothing},
		{"change a release that was made", `update release_items set artifact_digest = 'mine'`, refused},
		{"change an uploaded source", `update blobs set body = 'mine'`, refused},
		{"put a job into a queue of ctl-api", `insert into river_ctl.river_job (kind, max_attempts, args) values ('x', 1, '{}')`, refused},
		{"say that a build succeeded, with an artifact of its own", `update builds set state = 'succeeded', artifact_repository = 'r', artifact_digest = 'mine'`, reached},
		{"make a release of artifacts that it chooses", `insert into releases (id, org_id, app_id, number, config_id, made_by, digest) values ('rel_1', 'org_a', 'app_a', 2, 'cfg_a', 'rebuild', 'mine')`, reached},
		{"queue builds of any content at the Build Runner", `insert into runner_jobs (id, org_id, runner_id, build_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_a', 'rnr_a_build', 'bld_a', 'script', 'build', '{"anything":1}', 60)`, reached},
		{"put a Build Runner of its own in the place of the org's", `insert into enrolments (id, org_id, runner_id, secret_hash, replaces, created_by, expires_at) values ('enr_1', 'org_a', 'rnr_a_build', 'mine', true, 'x', now() + interval '1 hour')`, reached},
		{"make registry tokens that push", `insert into registry_tokens (hash, org_id, actions, expires_at) values ('mine', 'org_a', '{push}', now() + interval '1 hour')`, reached},
		{"read uploaded sources and what components are deployed with", `select body from blobs`, reached},
		{"rename an app as it is shown", `update apps set display_name = 'mine'`, reached},
		{"list the ids of all orgs, installs and open workflows", `select unnest(berth.open_work('install'))`, reached},
		{"do the same in any other org", `select set_config('berth.org', 'org_b', true); select id from builds where org_id = 'org_b'`, reached},
	},
	store.RoleRunner: {
		{"queue a job", `insert into runner_jobs (id, org_id, runner_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_a', 'rnr_a', 'script', 'run', '{}', 60)`, refused},
		{"change the kind or operation of a job", `update runner_jobs set kind = 'script', operation = 'run'`, refused},
		{"change the spec of a job", `update runner_jobs set spec = '{}'`, refused},
		{"change the capsule or the fence of a job", `update runner_jobs set capsule = '{}', fence = 8`, refused},
		{"say that a job mutates nothing", `update runner_jobs set mutates = false`, refused},
		{"give a job to another runner", `update runner_jobs set runner_id = 'rnr_a_build'`, refused},
		{"start a job again that has ended", `update runner_jobs set state = 'queued' where id = 'job_a_done'`, refused},
		{"give attempts of a job back", `update runner_jobs set attempt = 0 where id = 'job_a'`, refused},
		{"put a key of its own into a runner's row, with no enrolment open", `update runners set public_key = 'mine' where id = 'rnr_a'`, refused},
		{"have secrets sealed to a recipient of its own, with no enrolment open", `update runners set seal_recipient = 'mine' where id = 'rnr_a'`, refused},
		{"bring a revoked runner back", `update runners set state = 'active' where id = 'rnr_a_gone'`, refused},
		{"give sessions back that were voided", `update runners set epoch = 1 where id = 'rnr_a'`, refused},
		{"open an enrolment", `insert into enrolments (id, org_id, runner_id, secret_hash, replaces, created_by, expires_at) values ('enr_1', 'org_a', 'rnr_a', 'mine', true, 'x', now())`, refused},
		{"open a used enrolment again", `update enrolments set state = 'open' where id = 'enr_a'`, refused},
		{"bind a used enrolment to another key", `update enrolments set bound_key = 'mine' where id = 'enr_a'`, refused},
		{"let an enrolment replace a machine", `update enrolments set replaces = true`, refused},
		{"add a release, dispatch or customer key", `insert into keys (id, org_id, purpose, algorithm, key_id, public_key) select 'key_' || p, 'org_a', p, 'ed25519', p || ' mine', 'mine' from unnest('{release,dispatch,customer}'::text[]) p`, refused},
		{"add a key that no runner has", `insert into keys (id, org_id, install_id, purpose, algorithm, key_id, public_key) values ('key_1', 'org_a', 'ins_a', 'runner', 'ed25519', 'mine', 'mine')`, refused},
		{"take a retired key back into use", `update keys set retired_at = null where key_id = 'old'`, refused},
		{"retire the dispatch key", `update keys set retired_at = now() where purpose = 'dispatch'`, refused},
		{"change a key", `update keys set public_key = 'mine'`, refused},
		{"read private keys", `select private_sealed from keys`, refused},
		{"write the org's chain", `insert into chain_records (org_id, chain, seq, prev, hash, body) values ('org_a', 'org_a', 3, 'b', 'c', 'x')`, refused},
		{"cut the org's chain", `update chain_heads set seq = 1, hash = 'a' where chain = 'org_a'`, nothing},
		{"read the org's chain", `select body from chain_records where chain = 'org_a'`, nothing},
		{"say how far an install's chain had come", `insert into chain_heads (org_id, chain, seq, hash) values ('org_a', 'ins_a/anchored', 1, 'a')`, refused},
		{"cut the copy of an install's chain", `update chain_heads set seq = 1, hash = 'a' where chain = 'ins_a'`, refused},
		{"put the head of a copy where no record is", `update chain_heads set seq = 9, hash = 'x' where chain = 'ins_a'`, refused},
		{"rewrite a record", `update chain_records set body = 'mine'`, refused},
		{"delete a record", `delete from chain_records`, refused},
		{"publish settings", `insert into settings_versions (org_id, install_id, version, digest, envelope, expires_at) values ('org_a', 'ins_a', 2, 'd', '{}', now())`, refused},
		{"read inputs of installs", `select sealed from install_inputs`, refused},
		{"read the state trees of installs", `select tree from state_versions`, refused},
		{"read variables of apps", `select sealed from app_variables`, refused},
		{"approve a change", `update changes set state = 'approved'`, refused},
		{"decide on a change", `insert into decisions (id, org_id, change_id, answer, effect_digest, actor) values ('dec_1', 'org_a', 'chg_a', 'approve', 'd', 'ann')`, refused},
		{"raise a fence or take a lock of a resource", `update resources set fence = fence + 1`, refused},
		{"read tokens of people", `select hash from tokens`, refused},
		{"say that a build succeeded", `update builds set state = 'succeeded', started_at = now()`, refused},
		{"make a registry token with which an install's runner pushes", `insert into registry_tokens (hash, org_id, runner_id, session_id, actions, expires_at) values ('mine', 'org_a', 'rnr_a', 'ses_a', '{push}', now() + interval '1 hour')`, refused},
		{"make a run that a person or a workflow asked for", `insert into action_runs (id, org_id, install_id, action, trigger, key, state, created_by) values ('run_1', 'org_a', 'ins_a', 'x', 'manual', 'y', 'queued', 'ann')`, refused},
		{"take back an alarm or say that it is recorded", `update alarms set recorded_at = now()`, refused},
		{"put a job into a queue of ctl-api with arguments of its own", `insert into river_ctl.river_job (kind, max_attempts, args) values ('x', 1, '{}')`, refused},
		{"read logs", `select body from log_chunks`, refused},
		{"enrol a key of its own for a runner whose enrolment is open, before the customer does", `update runners set state = 'active', public_key = 'mine', seal_recipient = 'mine too' where id = 'rnr_a_new'; insert into keys (id, org_id, install_id, purpose, algorithm, key_id, public_key) values ('key_1', 'org_a', 'ins_a_new', 'seal', 'x25519', 'mine too', 'mine too')`, reached},
		{"read specs and capsules of jobs", `select spec, capsule from runner_jobs where id = 'job_a'`, reached},
		{"report what a job came to, and its plan", `update runner_jobs set state = 'succeeded', result = '{"outcome":"succeeded"}' where id = 'job_a'`, reached},
		{"open a session in a runner's name", `insert into runner_sessions (id, org_id, runner_id, epoch, token_hash) values ('ses_1', 'org_a', 'rnr_a', 4, 'mine')`, reached},
		{"read Terraform states, which are sealed", `select body from tf_states`, reached},
		{"replace Terraform states and free their locks", `update tf_states set body = 'mine' where kind = 'current'`, reached},
		{"add records to the copy of an install's chain, unsigned: berth-verify finds them", `insert into chain_records (org_id, chain, seq, prev, hash, body) values ('org_a', 'ins_a', 3, 'b', 'c', 'x')`, reached},
		{"report runs of checks that never ran", `insert into action_runs (id, org_id, install_id, action, trigger, key, runner_id, state, created_by) values ('run_1', 'org_a', 'ins_a', 'x', 'cron', 'y', 'rnr_a', 'queued', 'x')`, reached},
		{"make a registry token with which the Build Runner pushes", `insert into registry_tokens (hash, org_id, runner_id, session_id, actions, expires_at) values ('mine', 'org_a', 'rnr_a_build', 'ses_a', '{push}', now() + interval '1 hour')`, reached},
		{"raise false alarms", `insert into alarms (id, org_id, runner_id, kind, subject) values ('alm_1', 'org_a', 'rnr_a', 'enrolment', 'x')`, reached},
		{"put outputs of its own into a stack", `update stack_versions set outputs = '{"mine":1}', state = 'active', phoned_home_at = now()`, reached},
		{"wake any workflow, which then looks at its rows", `select berth.wake_workflow('wfl_a')`, reached},
		{"do the same in any other org", `select set_config('berth.org', 'org_b', true); select id from runners where org_id = 'org_b'`, reached},
	},
	store.RoleLog: {
		{"make, change or revive a token", `update tokens set revoked_at = null`, refused},
		{"make a grant", `insert into grants (id, org_id, account_id, role) values ('gra_1', 'org_a', 'acc_a', 'admin')`, refused},
		{"read addresses of people", `select email from accounts`, refused},
		{"read the names of installs", `select name from installs`, refused},
		{"read jobs", `select spec from runner_jobs`, refused},
		{"read runners or their sessions", `select token_hash from runner_sessions`, refused},
		{"read Terraform states", `select body from tf_states`, refused},
		{"read keys", `select public_key from keys`, refused},
		{"read inputs of installs", `select sealed from install_inputs`, refused},
		{"read a chain", `select body from chain_records`, refused},
		{"approve a change", `update changes set state = 'approved'`, refused},
		{"make a token that appends to logs", `insert into log_tokens (hash, org_id, stream_id, runner_id, session_id, expires_at) values ('mine', 'org_a', 'str_a', 'rnr_a', 'ses_a', now())`, refused},
		{"change or delete a line that is stored", `update log_chunks set body = 'mine'`, refused},
		{"make a stream", `insert into log_streams (id, org_id, job_id) values ('str_1', 'org_a', 'job_a')`, refused},
		{"wake anything", `select berth.wake_workflow('wfl_a')`, refused},
		{"read every log", `select body from log_chunks`, reached},
		{"append lines to any stream", `insert into log_chunks (org_id, stream_id, first_seq, last_seq, prev_hash, raw_bytes, body) values ('org_a', 'str_a', 2, 2, '', 1, 'x')`, reached},
		{"say that a stream has ended, or where it stands", `update log_streams set next_seq = 9 where id = 'str_a'`, reached},
		{"drop the logs of all orgs that are older than a day", `select berth.keep_log_partitions(1, 1)`, reached},
		{"read hashes of tokens, which open nothing", `select hash from tokens`, reached},
		{"do the same in any other org", `select set_config('berth.org', 'org_b', true); select body from log_chunks where org_id = 'org_b'`, reached},
	},
	store.RoleCtl: {
		{"put a key of its own into a runner's row", `update runners set public_key = 'mine'`, refused},
		{"have secrets sealed to a recipient of its own by a runner's row", `update runners set seal_recipient = 'mine'`, refused},
		{"add a key in a runner's name", `insert into keys (id, org_id, purpose, algorithm, key_id, public_key) values ('key_1', 'org_a', 'runner', 'ed25519', 'mine', 'mine')`, refused},
		{"change, retire or take back a key", `update keys set retired_at = now()`, refused},
		{"take a member's grants away", `delete from grants where account_id = 'acc_a'`, refused},
		{"make a token or a browser's session last longer", `update tokens set expires_at = now() + interval '1 year'`, refused},
		{"say that an identity provider vouches for another account", `update account_identities set account_id = 'acc_a'`, refused},
		{"make a Build Runner", `insert into runners (id, org_id, kind, name, state) values ('rnr_1', 'org_a', 'build', 'x', 'revoked')`, refused},
		{"queue a build at a runner", `insert into runner_jobs (id, org_id, runner_id, build_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_a', 'rnr_a_build', 'bld_a', 'script', 'build', '{}', 60)`, refused},
		{"change the spec or the capsule of a job that is queued", `update runner_jobs set spec = '{}', capsule = '{}'`, refused},
		{"bind an enrolment to a key", `update enrolments set bound_key = 'mine'`, refused},
		{"write an install's chain", `insert into chain_records (org_id, chain, seq, prev, hash, body) values ('org_a', 'ins_a', 3, 'b', 'c', 'x')`, refused},
		{"cut the copy of an install's chain", `update chain_heads set seq = 1, hash = 'a' where chain = 'ins_a'`, nothing},
		{"rewrite or delete a record of any chain", `update chain_records set body = 'mine'`, refused},
		{"change settings that were published", `update settings_versions set envelope = '{}'`, refused},
		{"change or delete a decision", `delete from decisions`, refused},
		{"change what a build made", `update builds set artifact_digest = 'mine'`, refused},
		{"change a release that was made", `update release_items set artifact_digest = 'mine'`, refused},
		{"change values of inputs that were set", `update install_inputs set values = '{}'`, refused},
		{"replace sealed inputs that were set, which it seals again with their purpose", `update install_inputs set sealed = 'mine'`, reached},
		{"read Terraform states", `select body from tf_states`, refused},
		{"read hashes of runners' sessions", `select token_hash from runner_sessions`, refused},
		{"read or change logs", `select body from log_chunks`, refused},
		{"change the hash of a token", `update tokens set hash = 'mine'`, refused},
		{"read jobs in builder's queue", `select args from river_builder.river_job`, refused},
		{"become another role", `set role berth_sys`, refused},
		{"switch row-level security off", `alter table installs disable row level security`, refused},
		{"queue jobs for installs", `insert into runner_jobs (id, org_id, runner_id, install_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_a', 'rnr_a', 'ins_a', 'script', 'run', '{}', 60)`, reached},
		{"approve any change, in anybody's name", `insert into decisions (id, org_id, change_id, answer, effect_digest, actor) values ('dec_1', 'org_a', 'chg_a', 'approve', 'd', 'ann')`, reached},
		{"open an enrolment that replaces an install's runner", `insert into enrolments (id, org_id, runner_id, secret_hash, replaces, created_by, expires_at) values ('enr_1', 'org_a', 'rnr_a', 'mine', true, 'x', now() + interval '1 hour')`, reached},
		{"add a release, dispatch or customer key", `insert into keys (id, org_id, purpose, algorithm, key_id, public_key) values ('key_1', 'org_a', 'customer', 'ed25519', 'mine', 'mine')`, reached},
		{"read inputs of installs and variables of apps, sealed with the master key", `select sealed from install_inputs`, reached},
		{"read the dispatch key, sealed with the master key", `select private_sealed from keys where purpose = 'dispatch'`, reached},
		{"publish settings, which runners accept only with the dispatch key's signature", `insert into settings_versions (org_id, install_id, version, digest, envelope, expires_at) values ('org_a', 'ins_a', 2, 'd', '{}', now())`, reached},
		{"make accounts, tokens and grants of any role", `insert into grants (id, org_id, account_id, role) values ('gra_1', 'org_a', 'acc_a', 'platform')`, reached},
		{"add records to the org's chain, unsigned: berth-verify finds them", `insert into chain_records (org_id, chain, seq, prev, hash, body) values ('org_a', 'org_a', 3, 'b', 'c', 'x')`, reached},
		{"move the head of the org's chain back, which its records show", `update chain_heads set seq = 1, hash = 'a' where chain = 'org_a'`, reached},
		{"revoke runners and tokens", `update runners set state = 'revoked' where id = 'rnr_a'`, reached},
		{"do the same in any other org", `select set_config('berth.org', 'org_b', true); select id from installs where org_id = 'org_b'`, reached},
	},
}

// Somebody has the password of a role, and nothing else. What that reaches is a
// table here and, generated from it, in the docs: a grant that widens the reach
// changes both.
func TestStolenPasswords(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	fixture, err := os.ReadFile("testdata/stolen.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, org := range []string{"a", "b"} {
		sql := strings.NewReplacer("ORG", "org_"+org, "_X", "_"+org, "'X'", "'"+org+"'").Replace(string(fixture))
		if _, err := db.Admin().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range services {
		conn, err := pgx.Connect(t.Context(), db.DSN(role))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range stolen[role] {
			if got, detail := play(t, conn, a.sql); got != a.want {
				t.Errorf("%s: %s: got %s (%s), want %s", role, a.what, got, detail, a.want)
			}
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// play runs an attack in org_a and undoes it.
func play(t *testing.T, conn *pgx.Conn, sql string) (_ reach, detail string) {
	t.Helper()
	ctx := t.Context()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `set local search_path = berth; select set_config('berth.org', 'org_a', true)`); err != nil {
		t.Fatal(err)
	}
	var tag pgconn.CommandTag
	for statement := range strings.SplitSeq(sql, "; ") {
		if tag, err = tx.Exec(ctx, statement); err != nil {
			break
		}
	}
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "42501":
		return refused, pg.Message
	case err != nil: // it passed the wall and hit something else: the attack is written wrongly
		return "an error", err.Error()
	case tag.RowsAffected() == 0:
		return nothing, tag.String()
	}
	return reached, tag.String()
}

const (
	rolesPage      = "../../../docs/reference/database-roles.md"
	generatedBegin = "<!-- generated by TestStolenPasswordsAreDocumented -->\n"
	generatedEnd   = "<!-- end of the generated part -->\n"
)

func TestStolenPasswordsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(rolesPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), generatedBegin)
	old, after, okEnd := strings.Cut(rest, generatedEnd)
	if !ok || !okEnd {
		t.Fatalf("%s lacks the lines %q and %q", rolesPage, generatedBegin, generatedEnd)
	}
	var want strings.Builder
	for _, role := range []store.Role{store.RoleBuilder, store.RoleRunner, store.RoleLog, store.RoleCtl} {
		fmt.Fprintf(&want, "\n### %s\n", role)
		for _, part := range []struct {
			title string
			in    []reach
		}{{"With this password somebody **can**", []reach{reached}}, {"and **cannot**", []reach{refused, nothing}}} {
			fmt.Fprintf(&want, "\n%s\n\n", part.title)
			for _, a := range stolen[role] {
				for _, r := range part.in {
					if a.want == r {
						fmt.Fprintf(&want, "- %s\n", a.what)
					}
				}
			}
		}
	}
	want.WriteString("\n")
	if *update {
		if err := os.WriteFile(rolesPage, []byte(before+generatedBegin+want.String()+generatedEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), old); diff != "" {
		t.Errorf("%s (-want +got); run the test with -update:\n%s", rolesPage, diff)
	}
}
