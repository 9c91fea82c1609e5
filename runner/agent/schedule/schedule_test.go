package schedule_test

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
	_ "time/tzdata" // summer time, also on machines without zones

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/schedule"
)

func at(clock string) time.Time {
	t, err := time.Parse("15:04:05", clock)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 11, 20, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

func TestDue(t *testing.T) {
	t.Parallel()
	lived := func(clocks ...string) (missed []schedule.Missed) {
		for _, clock := range clocks {
			missed = append(missed, schedule.Missed{At: at(clock)})
		}
		return missed
	}
	down := func(clocks ...string) (missed []schedule.Missed) {
		for _, clock := range clocks {
			missed = append(missed, schedule.Missed{At: at(clock), Down: true})
		}
		return missed
	}
	for _, tc := range []struct {
		name               string
		cron               string
		last, started, now string
		catchUp            bool
		want               schedule.Ticks
	}{
		{"nothing yet", "*/5 * * * *", "10:00:00", "09:00:00", "10:04:59", false, schedule.Ticks{Next: at("10:05:00")}},
		{"on the tick", "*/5 * * * *", "10:00:00", "09:00:00", "10:05:00", false, schedule.Ticks{Fire: at("10:05:00"), Next: at("10:10:00")}},
		{"the tick that was run is not run again", "*/5 * * * *", "10:05:00", "09:00:00", "10:05:01", true, schedule.Ticks{Next: at("10:10:00")}},
		{"a little late", "*/5 * * * *", "10:00:00", "09:00:00", "10:05:29", false, schedule.Ticks{Fire: at("10:05:00"), Next: at("10:10:00")}},
		{"too late: the machine slept", "*/5 * * * *", "10:00:00", "09:00:00", "10:06:00", false, schedule.Ticks{Missed: lived("10:05:00"), Next: at("10:10:00")}},
		{"only the newest of several is run", "* * * * *", "10:00:00", "09:00:00", "10:03:01", false, schedule.Ticks{
			Missed: lived("10:01:00", "10:02:00"), Fire: at("10:03:00"), Next: at("10:04:00"),
		}},
		{"what the agent did not live through is missed, however fresh", "* * * * *", "10:00:00", "10:02:01", "10:02:01", false, schedule.Ticks{
			Missed: down("10:01:00", "10:02:00"), Next: at("10:03:00"),
		}},
		{"of what was missed, each says why", "* * * * *", "10:00:00", "10:01:30", "10:02:50", false, schedule.Ticks{
			Missed: append(down("10:01:00"), lived("10:02:00")...), Next: at("10:03:00"),
		}},

		{"caught up: the agent was down", "0 2 * * *", "01:00:00", "02:40:00", "02:40:00", true, schedule.Ticks{Fire: at("02:00:00"), Next: at("02:00:00").AddDate(0, 0, 1)}},
		{"caught up: the machine slept", "0 2 * * *", "01:00:00", "01:30:00", "02:40:00", true, schedule.Ticks{Fire: at("02:00:00"), Next: at("02:00:00").AddDate(0, 0, 1)}},
		{"not after an hour: the night is over", "0 2 * * *", "01:00:00", "03:00:01", "03:00:01", true, schedule.Ticks{Missed: down("02:00:00"), Next: at("02:00:00").AddDate(0, 0, 1)}},
		{"of several the newest, once", "*/20 * * * *", "10:00:00", "10:45:00", "10:45:00", true, schedule.Ticks{
			Missed: down("10:20:00"), Fire: at("10:40:00"), Next: at("11:00:00"),
		}},
		{"not in the second half of its time: the next one is near", "*/20 * * * *", "10:00:00", "10:51:00", "10:51:00", true, schedule.Ticks{
			Missed: down("10:20:00", "10:40:00"), Next: at("11:00:00"),
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cron, err := schedule.Parse(tc.cron)
			if err != nil {
				t.Fatal(err)
			}
			got := schedule.Due(cron, schedule.Look{Last: at(tc.last), Started: at(tc.started), Now: at(tc.now), CatchUp: tc.catchUp})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Due (-want +got):\n%s", diff)
			}
		})
	}
}

// An action with several schedules has each tick of any of them, once.
func TestSeveralSchedules(t *testing.T) {
	t.Parallel()
	var list []cron.Schedule
	for _, text := range []string{"*/10 * * * *", "*/15 * * * *"} {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	look := schedule.Look{Last: at("10:00:00"), Started: at("10:31:00"), Now: at("10:31:00")}
	got := schedule.Due(schedule.Any(list...), look)
	want := schedule.Ticks{Next: at("10:40:00")}
	for _, clock := range []string{"10:10:00", "10:15:00", "10:20:00", "10:30:00"} {
		want.Missed = append(want.Missed, schedule.Missed{At: at(clock), Down: true})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Due (-want +got):\n%s", diff)
	}
	if !schedule.Has(list[1], at("10:15:00")) || schedule.Has(list[0], at("10:15:00")) {
		t.Error("10:15 is a tick of the second schedule only")
	}
}

// Schedules are in UTC, so a change to or from summer time neither skips nor repeats
// a tick.
func TestSummerTimeChangesNothing(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	nightly, err := schedule.Parse("30 1 * * *")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []time.Time{
		time.Date(2026, 3, 28, 12, 0, 0, 0, berlin), time.Date(2026, 10, 24, 12, 0, 0, 0, berlin),
	} {
		first := nightly.Next(change.UTC())
		for range 3 {
			next := nightly.Next(first)
			if next.Sub(first) != 24*time.Hour {
				t.Errorf("%s comes %s after %s", next, next.Sub(first), first)
			}
			first = next
		}
	}
}

func TestDueTellsAtMostAHundred(t *testing.T) {
	t.Parallel()
	cron, err := schedule.Parse("* * * * *")
	if err != nil {
		t.Fatal(err)
	}
	last, now := at("00:00:00"), at("10:00:00")
	for _, down := range []bool{true, false} {
		look := schedule.Look{Last: last, Started: last, Now: now}
		want := now.Add(-time.Minute) // the newest is run
		if down {
			look.Started, want = now, now
		}
		got := schedule.Due(cron, look)
		if len(got.Missed) != schedule.MaxMissed {
			t.Fatalf("down %v: %d missed, want %d", down, len(got.Missed), schedule.MaxMissed)
		}
		if newest := got.Missed[len(got.Missed)-1].At; !newest.Equal(want) {
			t.Errorf("down %v: newest missed = %s, want %s", down, newest, want)
		}
	}
}

func TestSchedulesAreInUTC(t *testing.T) {
	t.Parallel()
	cron, err := schedule.Parse("0 12 * * *")
	if err != nil {
		t.Fatal(err)
	}
	zone := time.FixedZone("far", 9*3600)
	got := schedule.Due(cron, schedule.Look{Last: at("00:00:00").In(zone), Now: at("00:00:01").In(zone)}).Next
	if !got.Equal(at("12:00:00")) {
		t.Errorf("next = %s, want 12:00 UTC", got)
	}
	if _, err := schedule.Parse("every now and then"); err == nil {
		t.Error("nonsense was parsed")
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	cron, err := schedule.Parse("* * * * *")
	if err != nil {
		t.Fatal(err)
	}
	seconds := map[int]bool{}
	for _, name := range []string{"res_a", "res_b", "res_c", "res_d", "res_e", "res_f"} {
		s := schedule.Spread(cron, name)
		first := s.Next(at("10:00:00"))
		second := s.Next(first)
		if second.Sub(first) != time.Minute || first.Sub(at("10:00:00")) > time.Minute {
			t.Errorf("%s runs at %s and %s, want once a minute", name, first, second)
		}
		if again := schedule.Spread(cron, name).Next(at("10:00:00")); !again.Equal(first) {
			t.Errorf("%s runs at %s, and asked again at %s", name, first, again)
		}
		seconds[first.Second()] = true
	}
	if len(seconds) < 3 {
		t.Errorf("six things run at only %d different seconds", len(seconds))
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]ed25519.PublicKey{"key_1": public}
	now := at("10:00:00")
	good := jobspec.Settings{Version: 4, OrgID: "org_1", InstallID: "ins_1", IssuedAt: now, ExpiresAt: now.Add(jobspec.SettingsLifetime)}
	for _, tc := range []struct {
		name    string
		change  func(*jobspec.Settings)
		signer  ed25519.PrivateKey
		inForce int64
		now     time.Time
		want    error
	}{
		{name: "newer settings", inForce: 3, now: now},
		{name: "the first settings", inForce: 0, now: now},
		{name: "the same version again", inForce: 4, now: now, want: schedule.ErrOlder},
		{name: "an older version", inForce: 5, now: now, want: schedule.ErrOlder},
		{name: "another install", change: func(s *jobspec.Settings) { s.InstallID = "ins_2" }, now: now, want: schedule.ErrForeign},
		{name: "another org", change: func(s *jobspec.Settings) { s.OrgID = "org_2" }, now: now, want: schedule.ErrForeign},
		{name: "expired", now: now.Add(jobspec.SettingsLifetime), want: schedule.ErrExpired},
		{name: "good for a year, but none is good for longer than a week", change: func(s *jobspec.Settings) { s.ExpiresAt = now.AddDate(1, 0, 0) }, now: now.Add(jobspec.SettingsLifetime), want: schedule.ErrExpired},
		{name: "good for a week from its receipt, whenever it was issued", now: now.Add(jobspec.SettingsLifetime - time.Hour)},
		{name: "issued in five minutes", change: func(s *jobspec.Settings) { s.IssuedAt = now.Add(5 * time.Minute) }, now: now},
		{name: "issued later than that", change: func(s *jobspec.Settings) { s.IssuedAt = now.Add(5*time.Minute + time.Second) }, now: now, want: schedule.ErrFuture},
		{name: "issued and good in the year 2099", change: func(s *jobspec.Settings) {
			s.IssuedAt, s.ExpiresAt = now.AddDate(73, 0, 0), now.AddDate(74, 0, 0)
		}, now: now, want: schedule.ErrFuture},
		{name: "a version near the end of numbers", change: func(s *jobspec.Settings) { s.Version = 1<<53 - 1 }, inForce: 3, now: now, want: schedule.ErrJump},
		{name: "the first version is bounded too", change: func(s *jobspec.Settings) { s.Version = 1_000_001 }, now: now, want: schedule.ErrJump},
		{name: "the largest jump", change: func(s *jobspec.Settings) { s.Version = 1_000_003 }, inForce: 3, now: now},
		{name: "past the end of numbers", change: func(s *jobspec.Settings) { s.Version = 1 << 53 }, inForce: 1<<53 - 2, now: now, want: schedule.ErrJump},
		{name: "a stranger's signature", signer: stranger, now: now, want: capsule.ErrSignature},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, signer := good, private
			if tc.change != nil {
				tc.change(&s)
			}
			if tc.signer != nil {
				signer = tc.signer
			}
			env, err := capsule.Sign(signer, "key_1", capsule.SettingsType, s)
			if err != nil {
				t.Fatal(err)
			}
			_, err = schedule.Install{Keys: keys, OrgID: "org_1", ID: "ins_1"}.Accept(env, tc.inForce, tc.now)
			if !errors.Is(err, tc.want) {
				t.Errorf("Accept = %v, want %v", err, tc.want)
			}
		})
	}
}

// Stored settings prove nothing, and end a week after they came. Their version
// counts also then: nothing older is taken.
func TestStoredSettings(t *testing.T) {
	t.Parallel()
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	mine := schedule.Install{Keys: map[string]ed25519.PublicKey{"key_1": public}, OrgID: "org_1", ID: "ins_1"}
	now := at("10:00:00")
	sign := func(s jobspec.Settings) capsule.Envelope {
		env, err := capsule.Sign(private, "key_1", capsule.SettingsType, s)
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	// A clock that was five minutes ahead, and a year of validity.
	good := jobspec.Settings{Version: 2_000_000, OrgID: "org_1", InstallID: "ins_1", IssuedAt: now.Add(5 * time.Minute), ExpiresAt: now.AddDate(1, 0, 0)}
	raw, err := json.Marshal(schedule.Stored{ReceivedAt: now, Envelope: sign(good)})
	if err != nil {
		t.Fatal(err)
	}
	old, err := json.Marshal(sign(good)) // as runners of before kept them
	if err != nil {
		t.Fatal(err)
	}
	forged := sign(good)
	forged.Payload = sign(jobspec.Settings{Version: 3, OrgID: "org_1", InstallID: "ins_1"}).Payload
	bad, err := json.Marshal(schedule.Stored{ReceivedAt: now, Envelope: forged})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		text    []byte
		now     time.Time
		version int64
		want    error
	}{
		{"as they came", raw, now.Add(time.Hour), good.Version, nil},
		{"the last moment", raw, now.Add(jobspec.SettingsLifetime - time.Nanosecond), good.Version, nil},
		{"a week after they came", raw, now.Add(jobspec.SettingsLifetime), good.Version, schedule.ErrExpired},
		{"of a runner of before", old, now.Add(time.Hour), good.Version, nil},
		{"of before, and a week after they were issued", old, now.Add(jobspec.SettingsLifetime + 5*time.Minute), good.Version, schedule.ErrExpired},
		{"a clock that went back", raw, now.Add(-time.Hour), good.Version, schedule.ErrFuture},
		{"changed on disk", bad, now.Add(time.Hour), 0, capsule.ErrSignature},
	} {
		var kept schedule.Stored
		if err := json.Unmarshal(tc.text, &kept); err != nil {
			t.Fatal(err)
		}
		_, version, err := mine.Again(kept, tc.now)
		if !errors.Is(err, tc.want) || version != tc.version {
			t.Errorf("%s: version %d, %v; want %d, %v", tc.name, version, err, tc.version, tc.want)
		}
	}
}

func TestBookIsKept(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/schedule.json"
	var book *schedule.Book
	open := func() {
		t.Helper()
		var err error
		if book, err = schedule.OpenBook(path); err != nil {
			t.Fatal(err)
		}
	}
	begins := func(cron, now, want string) {
		t.Helper()
		got, err := book.Begin("health", cron, at(now))
		if err != nil || !got.Equal(at(want)) {
			t.Errorf("under %q at %s ticks count from %s (%v), want %s", cron, now, got, err, want)
		}
	}
	open()
	begins("* * * * *", "09:59:30", "09:59:30") // seen for the first time: its past is nobody's
	for _, clock := range []string{"10:00:00", "10:05:00", "10:01:00"} {
		if err := book.Advance("health", at(clock)); err != nil {
			t.Fatal(err)
		}
	}
	open()
	begins("* * * * *", "11:00:00", "10:05:00")
	// Another schedule begins now: its ticks of before are nobody's.
	begins("*/2 * * * *", "11:00:30", "11:00:30")
	begins("*/2 * * * *", "11:10:00", "11:00:30")
	open()
	if err := book.Retain(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	open()
	begins("*/2 * * * *", "12:00:00", "12:00:00") // scheduled again after a time without

	// Several at once: the newer ones count, an older one changes nothing.
	for _, ticks := range []map[string]time.Time{
		{"a": at("10:05:00"), "b": at("10:05:00")},
		{"a": at("10:01:00"), "b": at("10:06:00"), "c": at("10:06:00")},
	} {
		if err := book.AdvanceAll(ticks); err != nil {
			t.Fatal(err)
		}
	}
	open()
	for action, want := range map[string]string{"a": "10:05:00", "b": "10:06:00", "c": "10:06:00"} {
		if got := book.Last(action); !got.Equal(at(want)) {
			t.Errorf("the last tick of %s is %s, want %s", action, got, want)
		}
	}
}

// A book of a runner of before knows ticks, and not of which schedule.
func TestBookOfBefore(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/schedule.json"
	if err := os.WriteFile(path, []byte(`{"health":"2026-11-20T10:05:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	book, err := schedule.OpenBook(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if last, err := book.Begin("health", "* * * * *", at("10:20:00")); err != nil || !last.Equal(at("10:05:00")) {
			t.Errorf("last = %s, %v; want 10:05", last, err)
		}
	}
}
