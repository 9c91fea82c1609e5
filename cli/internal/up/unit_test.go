package up

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNextDelay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		deaths int
		lived  time.Duration
		delay  time.Duration
		next   int
	}{
		{"first death", 0, time.Second, 100 * time.Millisecond, 1},
		{"each is waited for twice as long", 3, time.Second, 800 * time.Millisecond, 4},
		{"but never long", 20, time.Second, 5 * time.Second, 21},
		{"after a steady life it is a new story", 20, time.Minute, 100 * time.Millisecond, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if delay, next := nextDelay(tc.deaths, tc.lived); delay != tc.delay || next != tc.next {
				t.Errorf("got %s, %d; want %s, %d", delay, next, tc.delay, tc.next)
			}
		})
	}
}

func TestEnvironmentOfParts(t *testing.T) {
	t.Parallel()
	s := surroundings{
		layout: Layout{Dir: "/data", Shared: "/shared"}, runners: "/lib",
		environ: []string{
			"PATH=/bin", "OTEL_TRACES_EXPORTER=none", "BERTH_LEASE_TTL=5s", "HTTPS_PROXY=http://proxy", "TF_CLI_CONFIG_FILE=/etc/terraformrc", // for the parts
			"DATABASE_URL=postgres://u:secret@h/", "PGPASSWORD=secret", "BERTH_TOKEN=brt_secret", "AWS_SECRET_ACCESS_KEY=secret", // secrets
			"SHLVL=2", "BERTH_UP_DETACHED=1", // differ from start to start
			"BERTH_DATA=/elsewhere", "BERTH_TERRAFORM=/none", // said by us, or not at all
		},
	}
	want := []string{
		"BERTH_DATA=/shared", "BERTH_ENGINE=/lib/berth-engine", "BERTH_LEASE_TTL=5s", "BERTH_LISTEN=x", "BERTH_UP=/data",
		"HTTPS_PROXY=http://proxy", "OTEL_TRACES_EXPORTER=none", "PATH=/bin", "TF_CLI_CONFIG_FILE=/etc/terraformrc",
	}
	if diff := cmp.Diff(want, s.env(map[string]string{"BERTH_LISTEN": "x"})); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// With OTEL_METRICS_EXPORTER=prometheus each service listens for scrapes; all at
// one port, only the first would start.
func TestEachServiceIsScrapedAtItsOwnPort(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		environ []string
		want    string
	}{
		{nil, "   "},
		{[]string{"OTEL_METRICS_EXPORTER=otlp"}, "   "},
		{[]string{"OTEL_METRICS_EXPORTER=prometheus"}, "9464 9465 9466 9467"},
		{[]string{"OTEL_METRICS_EXPORTER=prometheus", "OTEL_EXPORTER_PROMETHEUS_PORT=9900"}, "9900 9901 9902 9903"},
	} {
		s := surroundings{layout: Layout{Dir: "/data"}, environ: tc.environ}
		var ports []string
		for _, part := range s.services() {
			port := ""
			for _, entry := range part.Env {
				if value, ok := strings.CutPrefix(entry, "OTEL_EXPORTER_PROMETHEUS_PORT="); ok {
					port += value
				}
			}
			ports = append(ports, port)
		}
		if got := strings.Join(ports, " "); got != tc.want {
			t.Errorf("%v: ports %q, want %q", tc.environ, got, tc.want)
		}
	}
}

func TestAdministratorsPasswordIsNoArgument(t *testing.T) {
	t.Parallel()
	s := supervisor{Config: Config{DatabaseURL: "postgres://root:s3cret@db.test:5432/postgres?sslmode=require"}}
	address, password, err := s.administrator()
	if err != nil || address != "postgres://root@db.test:5432/postgres?sslmode=require" || password != "s3cret" {
		t.Errorf("got %q, %q, %v", address, password, err)
	}
	for _, bad := range []string{"host=db password=s3cret", "postgres://db/?password=s3cret", "postgres://u:s3cret@%zz"} {
		s.DatabaseURL = bad
		if _, _, err := s.administrator(); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v, want an error without the password", bad, err)
		}
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, out, what, remedy string }{
		{"with remedy", "time=… level=INFO\nberth-ctl-api: connect as administrator: refused\ncheck the address\n", "connect as administrator: refused", "check the address"},
		{"what the client of Postgres tried", "berth-ctl-api: connect: refused (\n\ta:1: no\n\tb:1: no)\ncheck the address\n", "connect: refused ( a:1: no b:1: no)", "check the address"},
		{"without", "berth-ctl-api: no such org\n", "no such org", ""},
		{"a panic", "panic: x\n\ngoroutine 1\nexit 2\n", "panic: x", ""},
		{"of a service that logged more", "berth-builder: the registry's folder cannot be written\ntime=… level=INFO msg=\"stopped\"\n", "the registry's folder cannot be written", ""},
		{"of Postgres, which shuts down after it", "2026-11-23 [1] @ FATAL:  could not open file \"a\"\n2026-11-23 [1] @ HINT:  look at it\n2026-11-23 [1] @ LOG:  database system is shut down\n",
			"2026-11-23 [1] @ FATAL:  could not open file \"a\" HINT:  look at it", ""},
		{"an error that was logged", "level=ERROR msg=\"listener died\" err=x\nlevel=INFO msg=stopped\n", "level=ERROR msg=\"listener died\" err=x", ""},
		{"settings, of which several are wrong", "berth-ctl-api: settings:\nA is 0, want 4\nB is missing\n", "settings: A is 0, want 4 B is missing", ""},
		{"no error at all", "one\ntwo\n\n", "two", ""},
		{"nothing", "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if what, remedy := lastWords(tc.out); what != tc.what || remedy != tc.remedy {
				t.Errorf("got %q, %q", what, remedy)
			}
		})
	}
}

func TestFolderInAFileIsAProblemWithARemedy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		err := claim(dir, dir)
		var known *Problem
		if !errors.As(err, &known) || !strings.Contains(known.What, "cannot be the data folder") || known.Advice == "" {
			t.Errorf("%s: got %v, want a problem with a remedy", dir, err)
		}
	}
}

func TestLogsAreTurnedOverWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "part.log")
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for n := range oldLogs + 2 {
		if _, err := log.Write(bytes.Repeat([]byte{byte('a' + n)}, maxLogBytes)); err != nil {
			t.Fatal(err)
		}
		if err := rotateAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.WriteString("new\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "new\n" {
		t.Errorf("the log itself: %d bytes, %v; want the new line only", len(got), err)
	}
	var kept string
	for _, n := range []string{"1", "2", "3", "4"} {
		if data, err := os.ReadFile(path + "." + n); err == nil {
			kept += string(data[0])
		}
	}
	if kept != "edc" {
		t.Errorf("old logs, newest first: %q, want edc", kept)
	}
}

func TestLedgerSurvivesAndIsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	l, err := openLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	err = l.change(func(s *State) {
		s.Port = 8700
		s.Parts["ctl-api"] = PartRecord{Process: Process{PID: 1, Started: "boot/1"}, Digest: "d"}
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := openLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.read(), again.read()); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLedger(path); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("damaged file: %v", err)
	}
}

func TestProcessIsNamedForGood(t *testing.T) {
	t.Parallel()
	self, err := identify(os.Getpid())
	if err != nil || !self.Running() {
		t.Fatalf("the test itself: %+v, %v", self, err)
	}
	other := self
	other.Started += "0" // the same pid, of an earlier process
	if other.Running() {
		t.Error("a pid that somebody else has now passes for the older process")
	}
	if killed := other.end(0, time.Minute); killed {
		t.Error("a process that is gone was killed")
	}
}

func TestRecordedStopInReverseOrder(t *testing.T) {
	t.Parallel()
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s := State{Parts: map[string]PartRecord{
		"postgres": {Process: self, Order: 0}, "runner b": {Process: self, Order: 10}, "runner a": {Process: self, Order: 10},
		"builder": {Process: self, Order: 4}, "gone": {Process: Process{PID: self.PID, Started: "earlier"}, Order: 20},
	}}
	var got []string
	for _, l := range recorded(s) {
		got = append(got, l.name)
	}
	if want := []string{"runner a", "runner b", "builder", "postgres"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
