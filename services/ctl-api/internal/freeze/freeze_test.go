package freeze_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/freeze"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when.UTC()
}

func weekly(zone, from, to string, days ...string) freeze.Window {
	return freeze.Window{ID: "w", Weekly: &freeze.Weekly{Days: days, From: from, To: to, Zone: zone}}
}

func TestAt(t *testing.T) {
	t.Parallel()
	once := func(from, to string) freeze.Window {
		return freeze.Window{ID: "o", Starts: at(t, from), Ends: at(t, to)}
	}
	all := []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	const berlin, york, lordHowe = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
	for _, tt := range []struct {
		name    string
		windows []freeze.Window
		now     string
		until   string // empty: not frozen
	}{
		{"none", nil, "2026-11-27T10:00:00Z", ""},
		{"once, before it", []freeze.Window{once("2026-11-27T10:00:00Z", "2026-11-28T10:00:00Z")}, "2026-11-27T09:59:59Z", ""},
		{"once, at its first moment", []freeze.Window{once("2026-11-27T10:00:00Z", "2026-11-28T10:00:00Z")}, "2026-11-27T10:00:00Z", "2026-11-28T10:00:00Z"},
		{"once, at its end it is over", []freeze.Window{once("2026-11-27T10:00:00Z", "2026-11-28T10:00:00Z")}, "2026-11-28T10:00:00Z", ""},
		{
			"two that overlap are one", []freeze.Window{once("2026-11-27T10:00:00Z", "2026-11-28T10:00:00Z"), once("2026-11-28T09:00:00Z", "2026-11-29T00:00:00Z")},
			"2026-11-27T12:00:00Z", "2026-11-29T00:00:00Z",
		},
		{
			"two that follow each other are one, in any order", []freeze.Window{once("2026-11-28T10:00:00Z", "2026-11-29T00:00:00Z"), once("2026-11-27T10:00:00Z", "2026-11-28T10:00:00Z")},
			"2026-11-27T12:00:00Z", "2026-11-29T00:00:00Z",
		},
		{"weekly, in the zone and not in UTC", []freeze.Window{weekly(berlin, "09:00", "17:00", "mon")}, "2026-11-30T08:00:00Z", "2026-11-30T16:00:00Z"},
		{"weekly, on another day", []freeze.Window{weekly(berlin, "09:00", "17:00", "mon")}, "2026-12-01T08:00:00Z", ""},
		{"weekly, over midnight, before it", []freeze.Window{weekly(berlin, "22:00", "06:00", "fri")}, "2026-11-27T23:00:00Z", "2026-11-28T05:00:00Z"},
		{"weekly, over midnight, after it", []freeze.Window{weekly(berlin, "22:00", "06:00", "fri")}, "2026-11-28T04:00:00Z", "2026-11-28T05:00:00Z"},
		{"weekly, the night before does not begin on a Thursday", []freeze.Window{weekly(berlin, "22:00", "06:00", "fri")}, "2026-11-27T04:00:00Z", ""},
		{"weekly, a whole day", []freeze.Window{weekly("UTC", "00:00", "00:00", "sat")}, "2026-11-28T23:59:00Z", "2026-11-29T00:00:00Z"},
		{"weekly, days that follow each other", []freeze.Window{weekly("UTC", "00:00", "00:00", "sat", "sun")}, "2026-11-28T12:00:00Z", "2026-11-30T00:00:00Z"},
		{"weekly, without a gap: two months ahead", []freeze.Window{weekly("UTC", "00:00", "00:00", all...)}, "2026-11-28T00:00:00Z", "2027-01-29T00:00:00Z"},
		// Clocks in Berlin jump from 02:00 to 03:00 on 2026-03-29 (01:00Z), and back from 03:00 to 02:00 on 2026-10-25 (01:00Z).
		{"a night in which an hour is missing", []freeze.Window{weekly(berlin, "22:00", "06:00", "sat")}, "2026-03-28T21:00:00Z", "2026-03-29T04:00:00Z"},
		{"a night that has an hour twice", []freeze.Window{weekly(berlin, "22:00", "06:00", "sat")}, "2026-10-24T20:00:00Z", "2026-10-25T05:00:00Z"},
		{"it begins at a time that is skipped: at the jump", []freeze.Window{weekly(berlin, "02:30", "05:00", "sun")}, "2026-03-29T01:00:00Z", "2026-03-29T03:00:00Z"},
		{"and not before the jump", []freeze.Window{weekly(berlin, "02:30", "05:00", "sun")}, "2026-03-29T00:59:59Z", ""},
		{"it ends at a time that is skipped: at the jump", []freeze.Window{weekly(berlin, "00:00", "02:30", "sun")}, "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"},
		{"it lies in what is skipped: it is empty", []freeze.Window{weekly(berlin, "02:10", "02:50", "sun")}, "2026-03-29T01:00:00Z", ""},
		{"it begins at a time that comes twice: at the first", []freeze.Window{weekly(berlin, "02:30", "05:00", "sun")}, "2026-10-25T00:30:00Z", "2026-10-25T04:00:00Z"},
		{"it ends at a time that comes twice: at the second", []freeze.Window{weekly(berlin, "00:00", "02:30", "sun")}, "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z"},
		{"New York, the hour that comes twice", []freeze.Window{weekly(york, "01:15", "01:45", "sun")}, "2026-11-01T06:30:00Z", "2026-11-01T06:45:00Z"},
		{"New York, the hour that is missing", []freeze.Window{weekly(york, "02:30", "04:00", "sun")}, "2026-03-08T07:00:00Z", "2026-03-08T08:00:00Z"},
		{"a zone that jumps by half an hour", []freeze.Window{weekly(lordHowe, "02:15", "04:00", "sun")}, "2026-10-03T15:30:00Z", "2026-10-03T17:00:00Z"},
		{"a day that a zone left out begins at no time", []freeze.Window{weekly("Pacific/Apia", "08:00", "09:00", "fri")}, "2011-12-30T18:30:00Z", ""},
		{"far east of Greenwich, the day before in UTC", []freeze.Window{weekly("Pacific/Kiritimati", "00:00", "02:00", "mon")}, "2026-11-29T10:30:00Z", "2026-11-29T12:00:00Z"},
	} {
		_, until, ok := freeze.At(tt.windows, at(t, tt.now))
		if want := at(t, tt.until); ok != (tt.until != "") || ok && !until.Equal(want) {
			t.Errorf("%s: at %s: frozen %v until %s, want %q", tt.name, tt.now, ok, until, tt.until)
		}
	}
}

// Whatever the windows are, a moment before until is frozen, and until is not.
func TestUntilIsTheFirstFreeMoment(t *testing.T) {
	t.Parallel()
	windows := []freeze.Window{weekly("Europe/Berlin", "22:00", "03:30", "sat", "wed"), weekly("America/New_York", "01:30", "02:30", "sun"), weekly("Australia/Lord_Howe", "12:00", "02:10", "sat")}
	frozen := 0
	for now := at(t, "2026-01-01T00:00:00Z"); now.Year() == 2026; now = now.Add(37 * time.Minute) {
		_, until, ok := freeze.At(windows, now)
		if !ok {
			if in := freeze.In(windows, now); len(in) > 0 {
				t.Fatalf("%s: %d are in force, and nothing is frozen", now, len(in))
			}
			continue
		}
		frozen++
		if in := freeze.In(windows, until); len(in) > 0 {
			t.Fatalf("%s: frozen until %s, when %v is in force", now, until, in)
		}
		if in := freeze.In(windows, until.Add(-time.Second)); len(in) == 0 {
			t.Fatalf("%s: frozen until %s, a second before nothing is in force", now, until)
		}
	}
	if frozen < 1000 {
		t.Errorf("frozen at %d moments only", frozen)
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-11-27T10:00:00Z")
	for _, tt := range []struct {
		name string
		w    freeze.Window
		ok   bool
	}{
		{"once", freeze.Window{Starts: now, Ends: now.Add(time.Hour)}, true},
		{"weekly", weekly("Europe/Berlin", "22:00", "06:00", "fri"), true},
		{"nothing", freeze.Window{}, false},
		{"no end", freeze.Window{Starts: now}, false},
		{"backwards", freeze.Window{Starts: now, Ends: now.Add(-time.Hour)}, false},
		{"for ever", freeze.Window{Starts: now, Ends: now.Add(10 * 365 * 24 * time.Hour)}, false},
		{"both", freeze.Window{Starts: now, Ends: now.Add(time.Hour), Weekly: &freeze.Weekly{Days: []string{"mon"}, From: "00:00", To: "01:00", Zone: "UTC"}}, false},
		{"no day", weekly("UTC", "22:00", "06:00"), false},
		{"no such day", weekly("UTC", "22:00", "06:00", "monday"), false},
		{"no such time", weekly("UTC", "24:00", "06:00", "mon"), false},
		{"no such zone", weekly("Europe/Atlantis", "22:00", "06:00", "mon"), false},
		{"the zone of the machine", weekly("Local", "22:00", "06:00", "mon"), false},
		{"a zone that is a path", weekly("../../etc/passwd", "22:00", "06:00", "mon"), false},
	} {
		if err := tt.w.Valid(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
