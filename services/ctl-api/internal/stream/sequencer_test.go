package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

const patience = 30 * time.Second

// TestMain is also the sequencer that TestNumbersHaveNoGaps kills.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("BERTH_TEST_SEQUENCER_DSN"); dsn != "" {
		if err := sequence(context.Background(), dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func sequence(ctx context.Context, dsn string) error {
	st, err := store.Open(ctx, dsn, store.Options{Name: "sequencer"})
	if err != nil {
		return err
	}
	ctl := database.New(st)
	seq := stream.NewSequencer(stream.Sequencer{Store: ctl, Listener: ctl.NewListener(model.ChannelOutbox), KeepDays: 30, Log: slog.Default()})
	for { // all the time, so that a kill comes in the middle
		if _, err := seq.Number(ctx); err != nil {
			return err
		}
	}
}

// Many writers, of whom some take long, roll back or commit in another order than
// they began; two sequencers, one of which is killed again and again: every
// committed event is numbered exactly once, without gaps, and whoever wrote one
// after having seen another has the higher number.
func TestNumbersHaveNoGaps(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	admin := db.Admin()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`insert into orgs (org_id, name) values ('org1', 'one'), ('org2', 'two')`)
	seq, _ := sequencer(db)

	ctx, stop := context.WithCancel(t.Context())
	var background sync.WaitGroup
	kills := 0
	background.Go(func() {
		for ctx.Err() == nil {
			// Not a test's own binary by name: this one, as the sequencer.
			child := sequencerProcess(db.DSN(store.RoleCtl))
			if err := child.Start(); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(100+rand.IntN(150)) * time.Millisecond):
			}
			_ = child.Process.Kill() // SIGKILL
			_ = child.Wait()
			kills++
		}
	})
	background.Go(func() {
		for ctx.Err() == nil {
			if _, err := seq.Number(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})

	const writers, each = 8, 60
	var working sync.WaitGroup
	committed := [writers]int{}
	rollback := errors.New("roll back")
	for w := range writers {
		working.Go(func() {
			org := fmt.Sprintf("org%d", w%2+1)
			for i := range each {
				err := pgx.BeginFunc(t.Context(), admin, func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), `select berth.emit($1, 'test', null, null, jsonb_build_object('writer', $2::int, 'i', $3::int))`, org, w, i)
					if err != nil {
						return err
					}
					switch rand.IntN(6) {
					case 0: // stays open while others commit with higher ids
						_, err = tx.Exec(t.Context(), `select pg_sleep(0.03)`)
						return err
					case 1:
						return rollback
					}
					return nil
				})
				if err == nil {
					committed[w]++
				} else if !errors.Is(err, rollback) {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	stop()
	background.Wait()
	if kills < 2 {
		t.Errorf("the sequencer was killed %d times; the test proves nothing", kills)
	}
	if _, err := seq.Number(t.Context()); err != nil { // the last ones
		t.Fatal(err)
	}
	total := 0
	for _, n := range committed {
		total += n
	}
	for what, sql := range map[string]string{
		fmt.Sprint(total): `select count(*)::text from events`,
		"no outbox":       `select case count(*) when 0 then 'no outbox' else count(*)::text end from event_outbox`,
		"true true":       `select string_agg((n = last and n = different and first = 1)::text, ' ') from (select count(*) n, count(distinct seq) different, max(seq) last, min(seq) first from events group by org_id) x`,
		"heads":           `select case when bool_and(h.seq = e.last) then 'heads' end from event_heads h join (select org_id, max(seq) last from events group by org_id) e using (org_id)`,
		// A writer's next transaction begins after the commit of its last one.
		"in order": `select case when bool_and(later) then 'in order' end from (
			select (body->>'i')::int > coalesce(lag((body->>'i')::int) over (partition by body->>'writer' order by seq), -1) as later from events) x`,
	} {
		if got := column(t, admin, sql); len(got) != 1 || got[0] != what {
			t.Errorf("%s: got %v, want %s", sql, got, what)
		}
	}
}

func sequencerProcess(dsn string) *exec.Cmd {
	child := exec.Command(os.Args[0]) // this test binary
	child.Env = append(os.Environ(), "BERTH_TEST_SEQUENCER_DSN="+dsn)
	return child
}

// A commit of any service's transaction wakes the sequencer, which wakes the
// readers of the org: nobody polls.
func TestCommitsWakeReaders(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.Admin().Exec(t.Context(), `insert into orgs (org_id, name) values ('org1', 'one');
		insert into runners (id, org_id, kind, name, state) values ('rnr_1', 'org1', 'build', 'b', 'pending')`); err != nil {
		t.Fatal(err)
	}
	seq, listener := sequencer(db)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	running.Go(func() { _ = listener.Run(ctx) })
	running.Go(func() { _ = seq.Run(ctx) })
	<-listener.Ready()
	sub := listener.Subscribe(model.ChannelEvents, "org1")
	defer sub.Close()
	began := time.Now()
	// runner-api's role may not touch the outbox; its transactions tell all the same.
	err := db.AsRole(store.RoleRunner).Tx(t.Context(), "org1", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Raw().Exec(ctx, `update runners set switch = 'pause'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-sub.C:
	case <-time.After(patience):
		t.Fatal("no reader was woken")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s: that was the sweep, not the commit", took)
	}
	if got := column(t, db.Admin(), `select kind from events`); len(got) != 1 || got[0] != "runner.switched" {
		t.Errorf("events: %v", got)
	}
	err = db.AsRole(store.RoleRunner).Tx(t.Context(), "org1", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Raw().Exec(ctx, `select berth.emit('org1', 'forged', null, null, '{}')`)
		return err
	})
	if err == nil {
		t.Error("runner-api can forge events")
	}
}
