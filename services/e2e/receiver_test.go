package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/webhook"
)

// webhookAllow lets webhooks go to receivers of this machine.
const webhookAllow = "BERTH_WEBHOOK_ALLOW=127.0.0.0/8"

// receiver is the other end of a webhook: it fails half of the events when they come
// for the first time, by turns with an error, by breaking the connection and after it
// has taken the event.
type receiver struct {
	t    *testing.T
	name string

	mu      sync.Mutex
	secret  string
	arrived map[string]int   // how often each event came, by its id
	taken   map[string]int64 // the number of each event that was taken; one that was seen is dropped
	failed  int
	well    bool // it fails no more
}

// recovers has it take everything from now on.
func (r *receiver) recovers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.well = true
}

// receives makes a webhook for everything in the org from now on.
func (s *system) receives(name string) *receiver {
	s.t.Helper()
	r := &receiver{t: s.t, name: name, arrived: map[string]int{}, taken: map[string]int64{}}
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}}
	server.Start()
	s.t.Cleanup(server.Close)
	r.mu.Lock() // until its secret is known
	defer r.mu.Unlock()
	var made ctlapi.Webhook
	s.post("/webhooks", ctlapi.WebhookRequest{Name: name, URL: server.URL}, &made)
	r.secret = *made.Secret
	return r
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		return // the sender is gone
	}
	if err := webhook.Verify(req.Header, body, r.secret, time.Now()); err != nil {
		r.t.Errorf("signature: %v", err)
	}
	var got struct {
		ID, Type string
		Data     struct {
			Seq  int64
			Kind string
		}
	}
	if err := json.Unmarshal(body, &got); err != nil || got.ID != req.Header.Get("webhook-id") || got.Type != "dev.berth."+got.Data.Kind {
		r.t.Errorf("event %s: %v", body, err)
	}
	r.arrived[got.ID]++
	if !r.well && r.arrived[got.ID] == 1 && len(r.arrived)%2 == 0 {
		r.failed++
		switch r.failed % 3 {
		case 0: // taken, but the sender does not learn it: it comes again
			r.taken[got.ID] = got.Data.Seq
			panic(http.ErrAbortHandler)
		case 1:
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.taken[got.ID] = got.Data.Seq
}

// gotAll waits until every event of the org since the receiver was made is there, and
// compares the two. It returns the kinds that happened.
func (r *receiver) gotAll(s *system, since int64) []string {
	s.t.Helper()
	var all []ctlapi.Event
	for after := since; ; {
		var page ctlapi.EventPage
		s.get(fmt.Sprintf("/events?limit=500&after=%d", after), &page)
		all = append(all, page.Items...)
		if after = page.Position; !page.More {
			break
		}
	}
	s.eventually(time.Minute, "all events are received", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		missing := 0
		for _, e := range all {
			if seq, got := r.taken[e.ID]; !got {
				missing++
			} else if seq != e.Seq {
				s.t.Errorf("event %s came with the number %d, it has %d", e.ID, seq, e.Seq)
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d are missing", missing, len(all))
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []string
	for i, e := range all {
		if want := since + int64(i) + 1; e.Seq != want {
			s.t.Fatalf("event %d follows %d", e.Seq, want-1)
		}
		if !slices.Contains(kinds, e.Kind) {
			kinds = append(kinds, e.Kind)
		}
	}
	if r.failed < len(all)*2/5 {
		s.t.Errorf("of %d events only %d failed", len(all), r.failed)
	}
	s.t.Logf("webhook %s: %d events of %d kinds, %d of them failed at first", r.name, len(all), len(kinds), r.failed)
	return kinds
}
