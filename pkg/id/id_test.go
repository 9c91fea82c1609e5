package id_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/pkg/id"
)

func TestNewIsValidUniqueAndRising(t *testing.T) {
	t.Parallel()
	const n = 20_000 // many within one millisecond
	ids := make([]string, n)
	for i := range ids {
		ids[i] = id.New(id.Install)
	}
	for i, s := range ids {
		if !id.Valid(id.Install, s) {
			t.Fatalf("Valid(%q) = false", s)
		}
		if i > 0 && ids[i-1] >= s {
			t.Fatalf("id %d: %q is not above %q", i, s, ids[i-1])
		}
	}
}

func TestNewIsUniqueAcrossGoroutines(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var all []string
	for range 8 {
		wg.Go(func() {
			var mine []string
			for range 2000 {
				mine = append(mine, id.New(id.Job))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	wg.Wait()
	slices.Sort(all)
	if got := len(slices.Compact(all)); got != 16_000 {
		t.Errorf("%d distinct ids, want 16000", got)
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	good := id.New(id.Org)
	body := strings.TrimPrefix(good, "org")
	tests := []struct {
		name   string
		prefix string
		in     string
		want   bool
	}{
		{"fresh id", id.Org, good, true},
		{"with an underscore, as at first", id.Org, "org_" + body, true},
		{"two underscores", id.Org, "org__" + body, false},
		{"without the underscore that its kind has", id.Job, "job" + body, false},
		{"all zero", id.Org, "org_" + strings.Repeat("0", 26), true},
		{"largest 128-bit value", id.Org, "org_7" + strings.Repeat("z", 25), true},
		{"more than 128 bits", id.Org, "org_8" + strings.Repeat("0", 25), false},
		{"prefix of another kind", id.App, good, false},
		{"no prefix", id.Org, body, false},
		{"empty", id.Org, "", false},
		{"prefix only", id.Org, "org_", false},
		{"one character short", id.Org, good[:len(good)-1], false},
		{"one character more", id.Org, good + "0", false},
		{"upper case", id.Org, "org_" + strings.ToUpper(body), false},
		{"letter outside the alphabet", id.Org, "org_" + strings.Repeat("0", 25) + "u", false},
		{"path inside", id.Org, "org_../" + body[3:], false},
		{"line feed at the end", id.Org, good[:len(good)-1] + "\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := id.Valid(tt.prefix, tt.in); got != tt.want {
				t.Errorf("Valid(%q, %q) = %v, want %v", tt.prefix, tt.in, got, tt.want)
			}
		})
	}
}

func TestIDsOfAppsAreNames(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`^[a-z][a-z0-9]{0,62}$`) // RFC 1123, and what buckets, roles and databases take
	for _, prefix := range []string{id.Org, id.App, id.Component, id.Install} {
		if fresh := id.New(prefix); !label.MatchString(fresh) {
			t.Errorf("%s cannot be part of every name", fresh)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"wfl_01jd": {"wfl", "01jd"}, "ins_01jd": {"ins", "01jd"}, "ins_": {"ins", ""},
		"ins01jd": {"ins", "01jd"}, "ins0": {"ins", "0"}, id.New(id.Org): {"org", ""},
		"ins": {}, "insight": {}, "": {}, "wfl01jd": {}, "acme": {}, "app1": {},
	} {
		prefix, rest, ok := id.Cut(in)
		if prefix != want[0] || want[1] != "" && rest != want[1] || ok != (want[0] != "") {
			t.Errorf("Cut(%q) = %q, %q, %v", in, prefix, rest, ok)
		}
	}
}
