package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/pkg/webhook"
	"github.com/berth-dev/berth/services/ctl-api/internal/alertwatch"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/ctl-api/internal/webhooks"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

const patience = 30 * time.Second

type world struct {
	db     *pgtest.DB
	st     *database.Store
	office *webhooks.Office
	seq    *stream.Sequencer
	jobs   *inserter
}

type inserter struct{ client *jobs.Client }

func (i *inserter) InsertAt(ctx context.Context, tx *store.Tx, args river.JobArgs, due time.Time) error {
	return i.client.InsertAt(ctx, tx, args, due)
}

// start runs everything between the outbox and receivers.
func start(t *testing.T) *world {
	t.Helper()
	w := &world{db: pgtest.New(t)}
	w.st = database.New(w.db.AsRole(store.RoleCtl))
	master, err := seal.LoadOrCreateMasterKey(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	guard, err := webhooks.NewGuard("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	ring, insert := keys.New(master), &inserter{}
	w.jobs = insert
	w.office = &webhooks.Office{Keys: ring, Jobs: insert, Guard: guard}
	courier := &webhooks.Courier{Store: w.st, Jobs: insert, Keys: ring, Sender: webhooks.NewSender(guard), Log: log, Next: func(failed int, _ float64) (time.Duration, bool) {
		return 50 * time.Millisecond, failed < 3
	}}
	workers := river.NewWorkers()
	courier.AddWorkers(workers)
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[installAdvance]) error { return nil }))
	if insert.client, err = jobs.New(w.st.Store, jobs.Config{Schema: store.RiverCtl, Workers: workers, Queues: map[string]int{webhooks.Queue: 10}, Log: log}); err != nil {
		t.Fatal(err)
	}
	listener := w.st.NewListener(model.ChannelOutbox, model.ChannelEvents)
	w.seq = stream.NewSequencer(stream.Sequencer{Store: w.st, Listener: listener, KeepDays: 30, Log: log})
	distributor := webhooks.NewDistributor(webhooks.Distributor{Store: w.st, Listener: listener, Jobs: insert, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{listener.Run, w.seq.Run, distributor.Run, insert.client.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	<-listener.Ready()
	w.exec(t, `insert into orgs (org_id, name) values ('org1', 'one')`)
	return w
}

type installAdvance struct {
	InstallID string `json:"install_id"`
}

func (installAdvance) Kind() string { return "install_advance" }

func (w *world) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.db.Admin().Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) value(t *testing.T, sql string) (v string) {
	t.Helper()
	if err := w.db.Admin().QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (w *world) eventually(t *testing.T, sql, want string) {
	t.Helper()
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		got := w.value(t, sql)
		if got == want {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: got %q, want %q", sql, got, want)
		}
	}
}

// create makes a webhook; for all kinds when it names none.
func (w *world) create(t *testing.T, name, url string, kinds ...string) (id, secret string) {
	t.Helper()
	err := w.st.Tx(t.Context(), "org1", func(ctx context.Context, tx *database.Tx) error {
		row, s, err := w.office.Create(ctx, tx, webhooks.Wish{Name: &name, URL: &url, Kinds: &kinds, Actor: "ada"})
		id, secret = row.ID, s
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id, secret
}

// A receiver that fails half of what it gets for the first time, while another one
// hangs and a worker was killed in the middle: each event arrives, once by its id,
// with a signature that verifies.
func TestEveryEventArrives(t *testing.T) {
	t.Parallel()
	w := start(t)
	var mu sync.Mutex
	tries, taken := map[string]int{}, map[string]int{}
	secret := ""
	good := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err := webhook.Verify(r.Header, body, secret, time.Now()); err != nil {
			t.Errorf("signature: %v", err)
		}
		var ce struct{ SpecVersion, ID, Type, Source, Sequence string }
		if err := json.Unmarshal(body, &ce); err != nil || ce.SpecVersion != "1.0" || ce.ID != r.Header.Get("webhook-id") || ce.Source != "/orgs/org1" {
			t.Errorf("event %s: %v", body, err)
		}
		if tries[ce.ID]++; tries[ce.ID] == 1 && len(tries)%2 == 0 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		taken[ce.ID]++
	}))
	t.Cleanup(good.Close)
	hung := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	t.Cleanup(func() { close(hung); slow.CloseClientConnections(); slow.Close() })

	mu.Lock() // before the first delivery
	goodID, s := w.create(t, "good", good.URL)
	secret = s
	mu.Unlock()
	slowID, _ := w.create(t, "slow", slow.URL)
	// What a killed worker leaves behind: a claim that runs out.
	w.exec(t, `update webhooks set busy_until = now() + interval '1 second' where id = $1`, goodID)
	const events = 60
	w.exec(t, `select berth.emit('org1', 'workflow.failed', null, null, jsonb_build_object('number', n)) from generate_series(1, $1::int) n`, events)
	if _, err := w.seq.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, `select count(*)::text from webhook_deliveries where state = 'delivered' and webhook_id = '`+goodID+`'`, "60")
	mu.Lock()
	failed := 0
	for id, n := range taken {
		if n != 1 {
			t.Errorf("event %s was taken %d times", id, n)
		}
		failed += tries[id] - 1
	}
	if len(taken) != events || failed != events/2 {
		t.Errorf("%d events taken, %d failures", len(taken), failed)
	}
	mu.Unlock()
	if got := w.value(t, `select count(*)::text from webhook_deliveries where state = 'delivered' and webhook_id = '`+slowID+`'`); got != "0" {
		t.Errorf("the slow receiver took %s", got)
	}
	// Nothing of it is in clear.
	if got := w.value(t, `select count(*)::text from webhooks w where position($$`+secret+`$$ in encode(w.secrets, 'escape')) > 0`); got != "0" {
		t.Error("a secret is stored in clear")
	}
}

// A receiver that never takes anything: the last attempt makes a dead letter; after
// three days of nothing the webhook is disabled with one alarm. Then it is repaired,
// and what is dead is sent again, once.
func TestDeadLettersAndReplay(t *testing.T) {
	t.Parallel()
	w := start(t)
	var mu sync.Mutex
	broken, taken := true, map[string]int{}
	r := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if broken {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		taken[r.Header.Get("webhook-id")]++
	}))
	t.Cleanup(r.Close)
	id, _ := w.create(t, "hook", r.URL, "workflow.failed")
	emit := func() {
		w.exec(t, `select berth.emit('org1', 'workflow.failed', null, null, '{}')`)
		if _, err := w.seq.Number(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	emit()
	w.eventually(t, `select coalesce(string_agg(state || attempts || coalesce(status::text, ''), ','), '') from webhook_deliveries`, "dead3500")
	w.eventually(t, `select state from webhooks`, "enabled")
	w.exec(t, `update webhooks set failing_since = now() - interval '4 days'`)
	emit()
	w.eventually(t, `select state from webhooks`, "failed")
	if got := w.value(t, `select string_agg(kind || ' ' || subject, ',') from alarms`); got != "webhook_failed webhook hook" {
		t.Errorf("alarms: %s", got)
	}
	w.eventually(t, `select count(*)::text from event_outbox`, "0")
	mu.Lock()
	broken = false
	mu.Unlock()
	var n int
	change := func(fn func(ctx context.Context, tx *database.Tx) error) error {
		return w.st.Tx(t.Context(), "org1", fn)
	}
	replay := func(ctx context.Context, tx *database.Tx) (err error) {
		_, n, err = w.office.Replay(ctx, tx, "hook", webhooks.Replay{Dead: true})
		return err
	}
	if err := change(replay); err == nil {
		t.Error("a disabled webhook replays")
	}
	yes := true
	if err := change(func(ctx context.Context, tx *database.Tx) error {
		_, _, err := w.office.Update(ctx, tx, id, webhooks.Wish{Enabled: &yes})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := change(replay); err != nil || n != 2 {
		t.Fatalf("replay: %d events, %v", n, err)
	}
	w.eventually(t, `select count(*)::text from webhook_deliveries where cause = 'replay' and state = 'delivered'`, "2")
	if err := change(replay); err != nil || n != 0 {
		t.Errorf("what arrived is sent again: %d, %v", n, err)
	}
	if err := change(func(ctx context.Context, tx *database.Tx) error { _, err := w.office.Test(ctx, tx, id); return err }); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, `select count(*)::text from webhook_deliveries where cause = 'test' and state = 'delivered'`, "1")
	mu.Lock()
	defer mu.Unlock()
	if len(taken) != 3 {
		t.Errorf("taken: %v", taken)
	}
}

// A courier locks a webhook's row for a moment. What is distributed in that moment must
// not wait for the next sweep.
func TestEventsWaitForALockedWebhook(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create(t, "busy", "https://127.0.0.1:1/events")
	lock, err := w.db.Admin().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `select from webhooks where name = 'busy' for update`); err != nil {
		t.Fatal(err)
	}
	w.exec(t, `select berth.emit('org1', 'config.created', null, null, '{}')`)
	if _, err := w.seq.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	distributor := webhooks.NewDistributor(webhooks.Distributor{
		Store: w.st, Listener: w.st.NewListener(model.ChannelEvents), Jobs: w.jobs, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	distributed := make(chan error, 1)
	go func() { distributed <- distributor.Distribute(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-distributed:
		t.Errorf("it went past the webhook: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := lock.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-distributed; err != nil {
		t.Fatal(err)
	}
	w.eventually(t, `select count(*)::text from webhook_deliveries`, "1")
}

// Several people make the last webhook of an org at once: one of them does.
func TestNoMoreWebhooksThanAllowed(t *testing.T) {
	t.Parallel()
	w := start(t)
	const allowed = 20
	for n := range allowed - 1 {
		w.create(t, fmt.Sprint("hook", n), "https://127.0.0.1:1/events")
	}
	var made, refused atomic.Int32
	var everybody sync.WaitGroup
	for n := range 8 {
		everybody.Go(func() {
			name, url := fmt.Sprint("last", n), "https://127.0.0.1:1/events"
			err := w.st.Tx(t.Context(), "org1", func(ctx context.Context, tx *database.Tx) error {
				_, _, err := w.office.Create(ctx, tx, webhooks.Wish{Name: &name, URL: &url, Actor: "ada"})
				return err
			})
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, fault.ErrConflict):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	everybody.Wait()
	if made.Load() != 1 || refused.Load() != 7 || w.value(t, `select count(*)::text from webhooks`) != "20" {
		t.Errorf("%d were made, %d refused", made.Load(), refused.Load())
	}
}

// A webhook for alerts that open is called once for an episode, however often the trouble
// relapses.
func TestOneDeliveryOfAnEpisode(t *testing.T) {
	t.Parallel()
	w := start(t)
	var calls atomic.Int32
	pager := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(pager.Close)
	hook, _ := w.create(t, "pager", pager.URL, "alert.opened", "incident.opened")
	w.exec(t, `insert into apps (id, org_id, name) values ('app1', 'org1', 'shop')`)
	w.exec(t, `insert into customers (id, org_id, name) values ('cus1', 'org1', 'acme')`)
	w.exec(t, `insert into installs (id, org_id, customer_id, app_id, name, stack_kind, state, created_by) values ('ins1', 'org1', 'cus1', 'app1', 'acme', 'local', 'live', 'ada')`)
	w.exec(t, `insert into checks (org_id, install_id, name, verdict, since) values ('org1', 'ins1', 'answers', 'healthy', now())`)
	now := time.Now().UTC()
	look := func() {
		t.Helper()
		err := w.st.Tx(t.Context(), "org1", func(ctx context.Context, tx *database.Tx) error {
			row, err := tx.LockInstallRow(ctx, "ins1")
			if err != nil {
				return err
			}
			_, err = alertwatch.Look(ctx, tx, row, now)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	turn := func(verdict string, after time.Duration) {
		t.Helper()
		now = now.Add(after)
		w.exec(t, `update checks set verdict = $1, since = $2`, verdict, now)
	}
	arrived := func(want string) {
		t.Helper()
		if _, err := w.seq.Number(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.eventually(t, `select coalesce(string_agg(event_kind, ' ' order by event_seq), '') from webhook_deliveries where state = 'delivered' and webhook_id = '`+hook+`'`, want)
	}
	for range 4 {
		turn("unhealthy", time.Minute)
		look()
		turn("healthy", time.Minute)
		look()
	}
	arrived("alert.opened")
	now = now.Add(5 * time.Minute)
	look()
	turn("unhealthy", time.Minute)
	look()
	arrived("alert.opened alert.opened") // the next episode
	if calls.Load() != 2 {
		t.Errorf("the pager was called %d times, want 2", calls.Load())
	}
}

// Webhooks that cover some installs get an incident that reaches one of these, once, and
// with no word about others; those of the whole org get it as before. So do readers, by
// their rights. A replay sends the same again.
func TestIncidentOfFilteredWebhooks(t *testing.T) {
	t.Parallel()
	w := start(t)
	var mu sync.Mutex
	bodies := map[string][]string{}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies[r.URL.Path] = append(bodies[r.URL.Path], string(body))
	}))
	t.Cleanup(receiver.Close)
	w.exec(t, `insert into apps (id, org_id, name) values ('app1', 'org1', 'shop'), ('app2', 'org1', 'blog')`)
	w.exec(t, `insert into customers (id, org_id, name) values ('cus1', 'org1', 'acme'), ('cus2', 'org1', 'globex')`)
	w.exec(t, `insert into installs (id, org_id, customer_id, app_id, name, stack_kind, state, created_by, labels) values
	             ('ins1', 'org1', 'cus1', 'app1', 'one', 'local', 'live', 'ada', '{}'), ('ins2', 'org1', 'cus2', 'app1', 'two', 'local', 'live', 'ada', '{"tier": "gold"}'),
	             ('ins3', 'org1', 'cus2', 'app2', 'three', 'local', 'live', 'ada', '{"tier": "gold"}')`)
	hooks := map[string]string{
		"all":   `{"kinds": ["incident.*"]}`,
		"blog":  `{"kinds": ["incident.*"], "apps": ["app2"]}`,
		"one":   `{"kinds": ["incident.opened"], "installs": ["ins1"]}`,
		"gold":  `{"kinds": ["incident.*"], "labels": {"tier": "gold"}}`,
		"tin":   `{"kinds": ["incident.*"], "labels": {"tier": "tin"}}`,
		"quiet": `{"kinds": ["workflow.*"], "installs": ["ins1"]}`,
	}
	ids := map[string]string{}
	for name, filters := range hooks {
		ids[name], _ = w.create(t, name, receiver.URL+"/"+name)
		w.exec(t, `update webhooks set filters = $2 where id = $1`, ids[name], filters)
	}
	joins := func(alert, install string) {
		t.Helper()
		w.exec(t, `insert into alerts (id, org_id, install_id, kind, subject, state, text, since, opened_at, tell_at, told_at, incident_id)
		           values ($1, 'org1', $2, 'runner_silent', $1, 'open', 'x', now(), now(), now(), now(), 'inc_1')`, alert, install)
		if _, err := w.seq.Number(t.Context()); err != nil { // one batch each: what was told before has to be found
			t.Fatal(err)
		}
	}
	w.exec(t, `insert into incidents (id, org_id, kind, cause, about, installs) values ('inc_1', 'org1', 'runner_silent', 'c', 'runner', 2)`)
	joins("alt_1", "ins1")
	joins("alt_2", "ins2")
	joins("alt_3", "ins2")
	joins("alt_4", "ins3")
	w.exec(t, `update incidents set closed_at = now()`)
	if _, err := w.seq.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := func(want map[string]string) {
		t.Helper()
		for name, kinds := range want {
			w.eventually(t, `select coalesce(string_agg(event_kind, ' ' order by event_seq), '') from webhook_deliveries where state = 'delivered' and webhook_id = '`+ids[name]+`'`, kinds)
		}
	}
	told(map[string]string{
		"all": "incident.opened incident.closed", "blog": "incident.opened incident.closed", "one": "incident.opened", "gold": "incident.opened incident.closed",
	})
	told(map[string]string{"tin": "", "quiet": ""})

	if err := w.st.Tx(t.Context(), "org1", func(ctx context.Context, tx *database.Tx) error {
		_, _, err := w.office.Replay(ctx, tx, "blog", webhooks.Replay{After: new(int64)})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	told(map[string]string{"blog": "incident.opened incident.opened incident.closed incident.closed"})

	mu.Lock()
	defer mu.Unlock()
	for name, covers := range map[string][]string{"blog": {"ins3"}, "one": {"ins1"}, "gold": {"ins2", "ins3"}} {
		for _, body := range bodies["/"+name] {
			var ce struct {
				Type string
				Data struct {
					InstallID string `json:"install_id"`
					Body      map[string]any
				}
			}
			if err := json.Unmarshal([]byte(body), &ce); err != nil || !strings.HasPrefix(ce.Type, "dev.berth.incident.") || !slices.Contains(covers, ce.Data.InstallID) {
				t.Errorf("%s got %s (%v)", name, body, err)
			}
			if _, counts := ce.Data.Body["installs"]; counts {
				t.Errorf("%s learns in how many installs it is: %s", name, body)
			}
			for _, foreign := range []string{"ins1", "ins2", "ins3"} {
				if !slices.Contains(covers, foreign) && strings.Contains(body, foreign) {
					t.Errorf("%s learns of %s: %s", name, foreign, body)
				}
			}
		}
	}

	// Readers of GET /events, by rights and by filter.
	read := func(q stream.Query) (kinds []string) {
		t.Helper()
		var err error
		if q.Kinds, err = stream.KindsOf([]string{"incident.*"}); err != nil {
			t.Fatal(err)
		}
		err = w.st.Tx(t.Context(), "org1", func(ctx context.Context, tx *database.Tx) error {
			for after, more := int64(0), true; more; {
				page, err := stream.Read(ctx, tx, q, after, 1)
				if err != nil {
					return err
				}
				for _, e := range page.Events {
					kinds = append(kinds, e.InstallID+" "+string(e.Kind))
				}
				after, more = page.Position, page.More
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return kinds
	}
	reader := func(grant auth.Grant) auth.Principal {
		grant.Role = auth.RoleViewer
		return auth.Principal{Kind: auth.KindUser, OrgID: "org1", Grants: []auth.Grant{grant}}
	}
	ins3 := "ins3"
	for name, tt := range map[string]struct {
		q    stream.Query
		want []string
	}{
		"the whole org":            {stream.Query{Principal: reader(auth.Grant{})}, []string{" incident.opened", " incident.closed"}},
		"a customer":               {stream.Query{Principal: reader(auth.Grant{CustomerID: "cus2"})}, []string{"ins2 incident.opened", "ins2 incident.closed"}},
		"an install":               {stream.Query{Principal: reader(auth.Grant{InstallID: "ins1"})}, []string{"ins1 incident.opened", "ins1 incident.closed"}},
		"the org, of an install":   {stream.Query{Principal: reader(auth.Grant{}), InstallID: &ins3}, []string{"ins3 incident.opened", "ins3 incident.closed"}},
		"somebody without a place": {stream.Query{Principal: reader(auth.Grant{CustomerID: "cus9"})}, nil},
	} {
		if got := read(tt.q); !slices.Equal(got, tt.want) {
			t.Errorf("%s reads %q, want %q", name, got, tt.want)
		}
	}
}
