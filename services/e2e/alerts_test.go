package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/webhook"
)

// pager is the other end of a webhook for alerts: it keeps the kinds that came, each event once.
type pager struct {
	mu     sync.Mutex
	secret string
	seen   map[string]bool
	kinds  []string
}

func (s *system) pager() *pager {
	s.t.Helper()
	p := &pager{seen: map[string]bool{}}
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		var got struct {
			ID   string
			Data struct{ Kind string }
		}
		if err := errors.Join(webhook.Verify(req.Header, body, p.secret, time.Now()), json.Unmarshal(body, &got)); err != nil {
			s.t.Errorf("event %s: %v", body, err)
		}
		if !p.seen[got.ID] {
			p.seen[got.ID], p.kinds = true, append(p.kinds, got.Data.Kind)
		}
	})}}
	server.Start()
	s.t.Cleanup(server.Close)
	p.mu.Lock() // until its secret is known
	defer p.mu.Unlock()
	var made ctlapi.Webhook
	s.post("/webhooks", ctlapi.WebhookRequest{Name: "alerts", URL: server.URL, Kinds: &[]string{"alert.*", "incident.*"}}, &made)
	p.secret = *made.Secret
	return p
}

// want waits until these kinds came, and no other.
func (p *pager) want(s *system, kinds ...string) {
	s.t.Helper()
	s.eventually(time.Minute, fmt.Sprintf("the pager hears %v", kinds), func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !slices.Equal(p.kinds, kinds) {
			return fmt.Errorf("it heard %v", p.kinds)
		}
		return nil
	})
}

// TestAlert: a check fails after a deploy, and nobody is called while that is fresh; then one
// alert opens, a person acknowledges it, a relapse changes nothing, and it closes by itself.
// ctl-api is killed while it waits to tell.
func TestAlert(t *testing.T) {
	t.Parallel()
	s := start(t, webhookAllow)
	in := s.probe("acme")
	p := s.pager()
	db := s.database()
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	alerts := func(states ...string) (all []ctlapi.Alert) {
		t.Helper()
		var page ctlapi.AlertPage
		s.get("/alerts?install="+in.name+"&state="+strings.Join(states, "&state="), &page)
		return page.Items
	}
	// check runs the health check until its verdict is that.
	check := func(verdict string) {
		t.Helper()
		s.eventually(2*time.Minute, "the check is "+verdict, func() error {
			_, _, _ = s.run("actions", "run", in.name, "alive", "--watch")
			if got := column(t, db, `select verdict from berth.checks where install_id = $1 and name = 'alive'`, in.id); !slices.Equal(got, []string{verdict}) {
				return fmt.Errorf("it is %v", got)
			}
			return nil
		})
	}
	check("healthy")

	broken := in.files + ".broken"
	if err := os.Rename(in.files, broken); err != nil {
		t.Fatal(err)
	}
	check("unhealthy")
	s.eventually(time.Minute, "the alert is held back by the deploy before", func() error {
		held := alerts("held")
		if len(held) != 1 || held[0].Held.Because != "planned_work" || held[0].Subject != "alive" {
			return fmt.Errorf("held: %+v", held)
		}
		return nil
	})
	// An hour later. The next runs of the check make ctl-api look.
	exec(`update berth.changes set executed_at = executed_at - interval '1 hour', finished_at = finished_at - interval '1 hour' where executed_at is not null`)
	s.eventually(2*time.Minute, "the alert is open", func() error {
		_, _, _ = s.run("actions", "run", in.name, "alive", "--watch")
		if open := alerts("open"); len(open) != 1 {
			return fmt.Errorf("open: %+v", open)
		}
		return nil
	})
	ctl, ok := s.part("ctl-api")
	if !ok {
		t.Fatal("there is no ctl-api")
	}
	s.signal(ctl.PID, 9)
	p.want(s, "alert.opened")

	open := alerts("open")
	if len(open) != 1 || open[0].Text != "alive is unhealthy" || open[0].Release == nil || open[0].Severity != "critical" {
		t.Fatalf("open: %+v", open)
	}
	for _, said := range []struct {
		by   []string
		want string
	}{
		{[]string{"status"}, "1 alert"}, {[]string{"why", in.name}, "alive is unhealthy"}, {[]string{"installs", "show", in.name}, "alive is unhealthy"}, {[]string{"alerts", "list"}, "alive is unhealthy"},
	} {
		if out := s.must(said.by...); !strings.Contains(out, said.want) {
			t.Errorf("berth %v does not say %q:\n%s", said.by, said.want, out)
		}
	}
	if _, stderr, code := s.run("alerts", "ack", open[0].ID); code != 64 || !strings.Contains(stderr, "--note") {
		t.Errorf("an acknowledgement without a note: exit code %d, %s", code, stderr)
	}
	s.must("alerts", "ack", open[0].ID, "--note", "the directory is moved back")
	p.want(s, "alert.opened", "alert.acknowledged")

	// Well, ill again, and well: one episode.
	back, away := func() error { return os.Rename(broken, in.files) }, func() error { return os.Rename(in.files, broken) }
	for _, move := range []struct {
		do      func() error
		verdict string
	}{{back, "healthy"}, {away, "unhealthy"}, {back, "healthy"}} {
		if err := move.do(); err != nil {
			t.Fatal(err)
		}
		check(move.verdict)
	}
	s.eventually(time.Minute, "its clear window runs", func() error {
		if open := alerts("open"); len(open) != 1 || open[0].GoodSince == nil || open[0].Relapses != 1 || *open[0].AcknowledgedBy == "" {
			return fmt.Errorf("open: %+v", open)
		}
		return nil
	})
	exec(`update berth.alerts set good_since = good_since - interval '5 minutes' where state = 'open'`)
	s.eventually(2*time.Minute, "it closes", func() error {
		if all := alerts("held", "open", "closed"); len(all) != 1 || all[0].State != "closed" || *all[0].ClosedBecause != "recovered" {
			return fmt.Errorf("alerts: %+v", all)
		}
		return nil
	})
	p.want(s, "alert.opened", "alert.acknowledged", "alert.closed")
	if lost := s.lostWakeUps(); len(lost) > 0 {
		t.Errorf("wake-ups were lost: %v", lost)
	}
}
