package roles_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/runner/agent/roles"
)

// clock is one that the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

var declared = []customerrole.Role{
	{Written: repair, Name: "acme-repair", Known: true, Kind: customerrole.BreakGlass}, {Written: "audit", Name: "audit", Known: true, Kind: customerrole.Custom},
	{Written: "{{ .x }}", Name: "{{ .x }}", Kind: customerrole.Custom}, {Written: "a-{{ .y }}", Name: "twin", Known: true}, {Written: "b-{{ .y }}", Name: "twin", Known: true},
}

func open(t *testing.T) (roles.Store, *clock) {
	t.Helper()
	c := &clock{now: noon}
	s := roles.Store{Dir: filepath.Join(t.TempDir(), "roles"), Now: c.Now}
	if err := s.Declare(declared); err != nil {
		t.Fatal(err)
	}
	return s, c
}

func read(t *testing.T, s roles.Store) roles.Document {
	t.Helper()
	d, found, err := s.Read()
	if err != nil || !found {
		t.Fatal(found, err)
	}
	return d
}

// lines are the switches of a document.
func lines(d roles.Document) (out []string) {
	for _, l := range d.Log {
		out = append(out, fmt.Sprintf("%s on=%t by %s: %s", l.Name, l.On, l.By, l.Reason))
	}
	return out
}

func TestSwitch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, role string
		on         bool
		err        error
		says       string
	}{
		{"by its name", "acme-repair", true, nil, ""},
		{"as the app writes it", "{{.berth.install.id}}-repair", true, nil, ""},
		{"misspelt", "acme-repar", true, roles.ErrNoRole, "acme-repair"},
		{"whose name is not known", "{{ .x }}", true, roles.ErrUnnamed, "next deploy"},
		{"one of two of a name", "twin", true, roles.ErrNoRole, "as the app writes it"},
		{"one of two of a name, as the app writes it", "b-{{ .y }}", true, nil, ""},
		{"off, which it is", "audit", false, roles.ErrAlready, ""},
	} {
		s, _ := open(t)
		_, err := s.Switch(roles.Ask{Name: tc.role, On: tc.on, By: "ada"})
		if !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %v with %q", tc.name, err, tc.err, tc.says)
		}
		if changed := len(read(t, s).Log) > 0; changed != (tc.err == nil) {
			t.Errorf("%s: something was switched: %t", tc.name, changed)
		}
	}
	none := roles.Store{Dir: t.TempDir(), Now: time.Now}
	if _, err := none.Switch(roles.Ask{Name: "x", On: true}); !errors.Is(err, roles.ErrNoRole) {
		t.Errorf("without a release: %v", err)
	}
	if err := none.Declare(nil); err != nil {
		t.Fatal(err)
	}
	if _, found, err := none.Read(); found || err != nil {
		t.Errorf("an app without roles leaves a file: %t, %v", found, err)
	}
}

// A role is on from when the chain has it until its time is over, and off at once when
// the customer says so; a release without it switches it off.
func TestRoleGoesOffByItself(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	first, err := s.Switch(roles.Ask{Name: "acme-repair", On: true, For: 2 * time.Hour, By: "ada", Reason: "ticket"})
	if err != nil {
		t.Fatal(err)
	}
	if d := read(t, s); d.On(repair, c.Now()) || !d.SwitchedOn(repair, c.Now()) {
		t.Error("it counts as on before the chain has it")
	}
	if err := s.Recorded(first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Switch(roles.Ask{Name: "acme-repair", On: true, By: "eve"}); !errors.Is(err, roles.ErrAlready) {
		t.Errorf("switched on twice: %v", err)
	}
	if next, err := s.Expire(); err != nil || !next.Equal(noon.Add(2*time.Hour)) || !read(t, s).On(repair, c.Now()) {
		t.Errorf("the next look is at %v, %v", next, err)
	}
	c.move(2 * time.Hour)
	if read(t, s).On(repair, c.Now()) {
		t.Error("it is on although its time is over and nobody has looked yet")
	}
	for range 2 { // once, and then nothing is due
		if next, err := s.Expire(); err != nil || !next.IsZero() {
			t.Errorf("the next look is at %v, %v", next, err)
		}
	}
	c.move(-time.Hour) // the clock goes back: it stays off
	if read(t, s).On(repair, c.Now()) {
		t.Error("it is on again")
	}
	again, err := s.Switch(roles.Ask{Name: "acme-repair", On: true, By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Recorded(again.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Declare(declared[1:]); err != nil {
		t.Fatal(err)
	}
	d := read(t, s)
	want := []string{
		"acme-repair on=true by ada: ticket", "acme-repair on=false by berth-runner: its time was over",
		"acme-repair on=true by ada: ", "acme-repair on=false by berth-runner: the release does not have it any more",
	}
	if diff := cmp.Diff(want, lines(d)); diff != "" || d.On(repair, c.Now()) {
		t.Errorf("switches (-want +got):\n%s", diff)
	}
}

// The log stays short, and forgets neither the last switch of a role nor one that the
// chain does not have.
func TestLogOfSwitchesStaysShort(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	kept, err := s.Switch(roles.Ask{Name: "audit", On: true, By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 260 {
		one, err := s.Switch(roles.Ask{Name: "acme-repair", On: i%2 == 0, By: "ada"})
		if err == nil {
			err = s.Recorded(one.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if d := read(t, s); len(d.Log) > 201 || d.Last("audit").ID != kept.ID || d.Last(repair).On {
		t.Errorf("%d switches are kept, the last ones are %+v and %+v", len(d.Log), d.Last("audit"), d.Last(repair))
	}
}

// Keep records each switch, also one that was made while nobody ran, and switches off in
// time; Tell reports what the chain has, in order.
func TestKeepAndTell(t *testing.T) {
	t.Parallel()
	s := roles.Store{Dir: filepath.Join(t.TempDir(), "roles"), Now: time.Now}
	if err := s.Declare(declared); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Switch(roles.Ask{Name: "audit", On: true, By: "ada"}); err != nil { // before an agent runs
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	records, reports := make(chan chain.Record, 10), make(chan roles.Report, 20)
	fails := 1 // the first record cannot be written
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.Keep(ctx, func(_ context.Context, r chain.Record) error {
			if fails > 0 {
				fails--
				return errors.New("the disk is full")
			}
			records <- r
			return nil
		}, func(error) {})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	wg.Go(func() {
		_ = s.Tell(ctx, func(_ context.Context, r roles.Report) error { reports <- r; return nil }, func(err error) { t.Error(err) })
	})
	if _, err := s.Switch(roles.Ask{Name: "acme-repair", On: true, For: 300 * time.Millisecond, By: "ada", Reason: "ticket"}); err != nil {
		t.Fatal(err)
	}
	var said []string
	for range 3 {
		select {
		case r := <-records:
			said = append(said, r.Actor+": "+r.What)
			if r.Role == nil || r.Kind != chain.Event {
				t.Errorf("the record is %+v", r)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("recorded only %q", said)
		}
	}
	want := []string{"customer: role audit switched on", "customer: role acme-repair switched on", "runner: role acme-repair switched off"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	for deadline := time.After(20 * time.Second); ; {
		var report roles.Report
		select {
		case report = <-reports:
		case <-deadline:
			t.Fatal("the last switch was not told")
		}
		if len(report.Switches) < 3 {
			continue
		}
		if report.Roles[0].On != nil || report.Roles[1].On == nil || report.Switches[2].On || report.Switches[2].By != customerrole.ByRunner {
			t.Errorf("told %+v", report)
		}
		break
	}
	cancel()
	wg.Wait()
}

// What was on is off for the machine that takes over, and that is told in order.
func TestFromChain(t *testing.T) {
	t.Parallel()
	record := func(id string, on bool) chain.Record {
		return chain.Record{Kind: chain.Event, Role: &customerrole.Switch{ID: id, Role: repair, Name: "acme-repair", On: on, By: "ada"}}
	}
	d := roles.FromChain([]chain.Record{{Kind: chain.Intent}, record("rsw_1", true), record("rsw_1", true), record("rsw_2", false), record("rsw_3", true)}, noon)
	want := []string{"acme-repair on=true by ada: ", "acme-repair on=false by ada: ", "acme-repair on=true by ada: ", "acme-repair on=false by berth-runner: another machine took this install over"}
	if diff := cmp.Diff(want, lines(d)); diff != "" || d.On(repair, noon) || d.Log[3].Recorded {
		t.Errorf("switches (-want +got):\n%s", diff)
	}
	s := roles.Store{Dir: filepath.Join(t.TempDir(), "roles"), Now: time.Now}
	for _, restored := range []roles.Document{d, {}} { // a second try changes nothing
		if err := s.Restore(restored); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s); !reflect.DeepEqual(lines(got), want) {
			t.Errorf("restored: %v", lines(got))
		}
	}
}
