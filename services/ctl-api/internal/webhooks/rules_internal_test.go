package webhooks

import (
	"net/netip"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:4700::1": true,
		"127.0.0.1": false, "127.8.8.8": false, "::1": false, "0.0.0.0": false, "::": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "100.64.0.1": false,
		"169.254.169.254": false, "fd00:ec2::254": false, "168.63.129.16": false, "100.100.100.200": false,
		"fe80::1": false, "fc00::1": false, "fec0::1": false, "ff02::1": false, "224.0.0.1": false, "255.255.255.255": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:0:7f00:1::": false,
		"fe80::1%eth0": false, "2606:4700::1%eth0": false,
	} {
		if got := Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %t, want %t", address, got, want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	guard, err := NewGuard("10.1.0.0/16, 127.0.0.9, hooks.internal")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"https://hooks.example.com/x": true, "https://10.1.2.3/x": true, "http://127.0.0.9:80": true, "http://hooks.internal/x": true, "https://[2606:4700::1]/": true,
		"http://hooks.example.com/x": false, "https://10.2.0.1/x": false, "https://127.0.0.1/": false, "https://[::1]/": false, "https://[::ffff:10.2.0.1]/": false,
		"https://user:pw@hooks.example.com/": false, "ftp://hooks.example.com/": false, "file:///etc/passwd": false, "https://": false, "hooks.example.com": false,
		"https://169.254.169.254/latest": false, "https://hooks.example.com/#x": false, "gopher://10.1.2.3/": false,
	} {
		if got := guard.CheckURL(address) == nil; got != want {
			t.Errorf("%s: got %t, want %t", address, got, want)
		}
	}
	for _, bad := range []string{"https://hooks.internal", "10.0.0.0/99", "*.internal"} {
		if _, err := NewGuard(bad); err == nil {
			t.Errorf("%q is taken as an allowance", bad)
		}
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	var total time.Duration
	for failed := 1; ; failed++ {
		low, more := NextAttempt(failed, 0)
		if !more {
			if failed != MaxAttempts {
				t.Errorf("%d attempts, want %d", failed, MaxAttempts)
			}
			break
		}
		if high, _ := NextAttempt(failed, 0.999); high <= low || high > low+low/5 {
			t.Errorf("after %d failures: %s to %s", failed, low, high)
		}
		total += low
	}
	if total < disableAfter-time.Hour || total > 75*time.Hour {
		t.Errorf("attempts go on for %s", total)
	}
	now := time.Now()
	for name, tt := range map[string]struct {
		last  bool
		since time.Time
		want  bool
	}{
		"three days of nothing":              {true, now.Add(-73 * time.Hour), true},
		"an attempt is left":                 {false, now.Add(-100 * time.Hour), false},
		"something arrived yesterday":        {true, now.Add(-20 * time.Hour), false},
		"nothing failed before this attempt": {true, time.Time{}, false},
	} {
		if got := GivenUp(tt.last, tt.since, now); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	e := stream.Event{Kind: "workflow.failed", AppID: "app1", InstallID: "ins1"}
	gold := map[string]string{"tier": "gold"}
	for name, tt := range map[string]struct {
		f    Filters
		e    stream.Event
		want bool
	}{
		"no filter":             {Filters{}, e, true},
		"its kind":              {Filters{Kinds: []string{"build.failed", "workflow.failed"}}, e, true},
		"its noun":              {Filters{Kinds: []string{"workflow.*"}}, e, true},
		"another kind":          {Filters{Kinds: []string{"workflow.succeeded"}}, e, false},
		"its app, its install":  {Filters{Apps: []string{"app1"}, Installs: []string{"ins1"}}, e, true},
		"another install":       {Filters{Apps: []string{"app1"}, Installs: []string{"ins2"}}, e, false},
		"its label":             {Filters{Labels: gold}, e, true},
		"another label":         {Filters{Labels: map[string]string{"tier": "silver"}}, e, false},
		"an empty value":        {Filters{Labels: map[string]string{"zone": ""}}, e, false},
		"no install, but label": {Filters{Labels: gold}, stream.Event{Kind: event.Kind("build.failed")}, false},
	} {
		labels := gold
		if tt.e.InstallID == "" {
			labels = nil
		}
		if got := tt.f.Wants(tt.e.Kind) && tt.f.Covers(tt.e, labels); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
