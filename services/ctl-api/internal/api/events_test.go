package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/internal/model"
)

// number gives what has happened its numbers and returns the last one.
func (d *door) number(org string) int64 {
	d.t.Helper()
	seq := stream.NewSequencer(stream.Sequencer{
		Store: d.store, Listener: d.store.NewListener(model.ChannelOutbox), KeepDays: 30, Log: slog.New(slog.DiscardHandler),
	})
	if _, err := seq.Number(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	var head int64
	if err := d.db.Admin().QueryRow(d.t.Context(), `select seq from event_heads h join orgs o using (org_id) where o.name = $1`, org).Scan(&head); err != nil {
		d.t.Fatal(err)
	}
	return head
}

// happens writes n events about an install, with something in their bodies.
func (d *door) happens(install string, n int, filler string) {
	d.t.Helper()
	d.sql(`select berth.emit(i.org_id, 'workflow.failed', null, i.id, jsonb_build_object('number', n, 'actor', $3::text)) from installs i, generate_series(1, $2::int) n where i.name = $1`, install, n, filler)
}

// events reads a page.
func (c caller) events(query string) ctlapi.EventPage {
	c.d.t.Helper()
	status, _, body := c.raw("GET", "/events?"+query, "")
	var page ctlapi.EventPage
	if err := json.Unmarshal(body, &page); status != http.StatusOK || err != nil {
		c.d.t.Fatalf("%s answered %d: %s", query, status, body)
	}
	return page
}

func TestPagesOfEvents(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex")
	for range 3 {
		d.happens("acme", 2, "x")
		d.happens("globex", 3, "x")
		d.number("initech")
	}
	head := d.number("initech")

	everything := admin.events("limit=500")
	if everything.Position != head || everything.More || int64(len(everything.Items)) != head {
		t.Fatalf("admin got %d of %d events, position %d, more %t", len(everything.Items), head, everything.Position, everything.More)
	}
	for i, e := range everything.Items {
		if e.Seq != int64(i)+1 || e.After != int64(i) {
			t.Errorf("event %d has the number %d after %d", i+1, e.Seq, e.After)
		}
	}

	// Somebody who may see one install gets its events only, in the same order and
	// with the same numbers. What they may not see leaves gaps; after says that
	// nothing of theirs is in these.
	local := admin.member(ctlapi.MemberRequest{Name: "lena", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator, Install: new("acme")})
	d.number("initech")
	var acme string
	if err := d.db.Admin().QueryRow(t.Context(), `select id from installs where name = 'acme'`).Scan(&acme); err != nil {
		t.Fatal(err)
	}
	var want, got []int64
	for _, e := range everything.Items {
		if e.InstallID != nil && *e.InstallID == acme {
			want = append(want, e.Seq)
		}
	}
	after := int64(0)
	for {
		page := local.events(fmt.Sprintf("limit=2&after=%d", after))
		last := after
		for _, e := range page.Items {
			if e.InstallID == nil || *e.InstallID != acme {
				t.Errorf("a stranger's event: %+v", e)
			}
			if e.After != last {
				t.Errorf("event %d comes after %d, got after %d", e.Seq, last, e.After)
			}
			last = e.Seq
			if e.Seq <= head {
				got = append(got, e.Seq)
			}
		}
		if page.Position <= after && page.More {
			t.Fatalf("page after %d goes to %d", after, page.Position)
		}
		if after = page.Position; !page.More {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 6 {
		t.Errorf("events of one install (-want +got):\n%s", diff)
	}

	// Where to begin.
	_, _, body := admin.raw("GET", "/events?after=1", "", "Last-Event-ID", "5")
	var page ctlapi.EventPage
	if err := json.Unmarshal(body, &page); err != nil || page.Items[0].Seq != 6 {
		t.Errorf("Last-Event-ID is not stronger than after: %s", body)
	}
	if now := admin.events("from_now=true"); len(now.Items) != 0 || now.Position < head {
		t.Errorf("from now on: %+v", now)
	}
	fifth := everything.Items[4]
	if since := admin.events("since=" + fifth.At.UTC().Format(time.RFC3339Nano)); len(since.Items) == 0 || since.Items[0].At.Before(fifth.At) || since.Items[0].Seq > fifth.Seq {
		t.Errorf("since the fifth, at %s, it begins with %+v", fifth.At, since.Items)
	}
	if future := admin.events("since=2999-01-01T00:00:00Z"); len(future.Items) != 0 {
		t.Errorf("in the future: %+v", future)
	}

	// Where nobody can begin, and limits.
	for query, code := range map[string]string{
		"after=100000": "event_ahead", "limit=0": "invalid", "limit=501": "invalid", "after=-1": "invalid", "since=yesterday": "invalid", "kind=nope.*": "event_kind_unknown",
	} {
		status, _, body := admin.raw("GET", "/events?"+query, "")
		if status != http.StatusUnprocessableEntity || !strings.Contains(string(body), `"`+code+`"`) {
			t.Errorf("%s answered %d: %s", query, status, body)
		}
	}

	// Retention: a day that is no longer kept. Who asks for it learns it, with or
	// without a stream, rather than reading on as if nothing had been there.
	d.sql(`delete from events where seq <= 5`)
	for _, query := range []string{"after=2", "after=2&follow=true", "since=2020-01-01T00:00:00Z"} {
		status, _, body := admin.raw("GET", "/events?"+query, "")
		var p ctlapi.Problem
		if err := json.Unmarshal(body, &p); err != nil || status != http.StatusGone || p.Code != "events_expired" || !strings.Contains(*p.Remedy, "read on from 5") {
			t.Errorf("%s answered %d: %s", query, status, body)
		}
	}
	if kept := admin.events("after=0&limit=1"); kept.Items[0].Seq != 6 {
		t.Errorf("0 begins with %d", kept.Items[0].Seq)
	}
	if kept := admin.events("after=5&limit=1"); kept.Items[0].Seq != 6 {
		t.Errorf("5 goes on with %d", kept.Items[0].Seq)
	}
	d.sql(`delete from events`)
	if status, _, body := admin.raw("GET", "/events?after=2", ""); status != http.StatusGone {
		t.Errorf("nothing is kept, and it answered %d: %s", status, body)
	}
	if none := admin.events("after=" + strconv.FormatInt(d.number("initech"), 10)); len(none.Items) != 0 {
		t.Errorf("at the end: %+v", none)
	}
}

// sse is an open stream of events.
type sse struct {
	body io.ReadCloser
	*bufio.Scanner
}

// follow opens a stream, which ends with the test.
func (c caller) follow(query string, lastEventID int64) *sse {
	c.d.t.Helper()
	req, err := http.NewRequestWithContext(c.d.t.Context(), http.MethodGet, c.d.url+"/events?follow=true&"+query, nil)
	if err != nil {
		c.d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if lastEventID > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(lastEventID, 10))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		c.d.t.Fatalf("stream: %v, %+v", err, resp)
	}
	s := &sse{body: resp.Body, Scanner: bufio.NewScanner(resp.Body)}
	s.Buffer(nil, 1<<20)
	c.d.t.Cleanup(func() { _ = s.body.Close() })
	return s
}

// event is the next one: its kind, "position" among them, and number. ok is false
// at the end of the stream.
func (s *sse) event() (kind string, seq int64, ok bool) {
	for s.Scan() {
		field, value, _ := strings.Cut(s.Text(), ": ")
		switch field {
		case "id":
			seq, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			kind = value
		case "":
			return kind, seq, true
		}
	}
	return "", 0, false
}

// A stream of somebody with few rights: positions tell how far it has come, not what
// they may not see; it ends with the token.
func TestStreamIsConfined(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex")
	local := admin.member(ctlapi.MemberRequest{Name: "lena", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator, Install: new("acme")})
	head := d.number("initech")
	s := local.follow("from_now=true", 0)
	if kind, seq, ok := s.event(); !ok || kind != "position" || seq != head {
		t.Errorf("it begins with %q %d, want its position %d", kind, seq, head)
	}
	d.happens("globex", 3, "x")
	d.number("initech")
	if kind, seq, ok := s.event(); !ok || kind != "position" || seq != head+3 {
		t.Errorf("events of another install: %q %d", kind, seq)
	}
	d.happens("acme", 1, "x")
	d.number("initech")
	if kind, seq, ok := s.event(); !ok || kind != "workflow.failed" || seq != head+4 {
		t.Errorf("an event of the install: %q %d", kind, seq)
	}
	me, err := local.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	removed, err := admin.RemoveMemberWithResponse(t.Context(), me.JSON200.Account.ID)
	must(t, removed, err, http.StatusNoContent)
	for {
		kind, _, ok := s.event()
		if !ok {
			break
		}
		if kind != "position" {
			t.Errorf("after the member was removed came %q", kind)
		}
	}
}

// One reader follows replica after replica while they end in turn and events keep
// coming: each arrives once. Another one is slow, which holds up nobody.
func TestStreamGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme")
	head := d.number("initech")

	slow := admin.follow("", head)
	const many = 1200 // more than two reads of a stream
	d.happens("acme", many, strings.Repeat("x", 2000))
	d.number("initech")

	replicas := []*door{d}
	for range 2 {
		replicas = append(replicas, newDoorOn(t, d.db, d.keys))
	}
	var got []int64
	last := head
	for i, replica := range replicas {
		s := replica.as(admin.token).follow("", last)
		d.happens("acme", 10, "x")
		upTo := d.number("initech")
		for last < upTo {
			kind, seq, ok := s.event()
			if !ok {
				t.Fatalf("replica %d ended after %d", i, last)
			}
			if kind != "position" {
				got = append(got, seq)
			}
			last = seq
		}
		if i == 0 {
			continue // the slow reader is still there
		}
		go replica.stop()
		for {
			kind, seq, ok := s.event()
			if !ok {
				break
			}
			if kind != "position" {
				t.Errorf("after its end was asked for, replica %d sent %q %d", i, kind, seq)
			}
		}
	}
	var want []int64
	for n := head + 1; n <= last; n++ {
		want = append(want, n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events over three replicas (-want +got):\n%s", diff)
	}
	got = nil
	for len(got) == 0 || got[len(got)-1] < last {
		kind, seq, ok := slow.event()
		if !ok {
			t.Fatalf("the slow reader lost its stream after %d events", len(got))
		}
		if kind != "position" {
			got = append(got, seq)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the slow reader got %d events, want %d", len(got), len(want))
	}
}
