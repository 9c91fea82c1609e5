package events_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/events"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// berth stands in for the control plane: three events, and what it was asked.
type berth struct{ asked []string }

// ServeHTTP implements http.Handler.
func (b *berth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/events" { // installs by name
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(ctlapi.Install{ID: "ins_1", Name: "acme"})
		return
	}
	b.asked = append(b.asked, r.URL.RawQuery)
	var all []ctlapi.Event
	for n := range int64(3) {
		all = append(all, ctlapi.Event{
			Seq: n + 7, After: n + 6, ID: fmt.Sprint("evt_", n), At: now, Kind: "change.approved",
			Body: json.RawMessage(`{"install": "acme", "resource": "api", "actor": "\u001b[2Jada"}`),
		})
	}
	if r.URL.Query().Get("follow") == "" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(ctlapi.EventPage{Items: all, Position: 9})
		return
	}
	if r.Header.Get("Last-Event-ID") != "" { // that was all
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(ctlapi.Problem{Status: http.StatusGone, Title: "Gone", Code: "events_expired"})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all {
		data, _ := json.Marshal(e)
		_, _ = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data)
	}
}

func (b *berth) types(t *testing.T, output string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	server := httptest.NewServer(b)
	defer server.Close()
	var out, errOut bytes.Buffer
	c := &command.CLI{
		Streams: command.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, Now: func() time.Time { return now }, OutputFlag: output,
		Getenv: func(name string) string {
			return map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x", "HOME": t.TempDir()}[name]
		},
	}
	cmd := events.Command(c)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

func TestWhereItBegins(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                  "since=2026-11-25T12%3A00%3A00Z&limit=100",
		"--since 6":                         "after=6&limit=100",
		"--since 0 --limit 0":               "after=0&limit=500",
		"--since 2h":                        "since=2026-11-26T10%3A00%3A00Z&limit=100",
		"--since 2026-11-01T00:00:00+02:00": "since=2026-10-31T22%3A00%3A00Z&limit=100",
		"--since 6 --type change.*,workflow.failed --install acme": "after=6&kind=change.%2A&kind=workflow.failed&install=acme&limit=100",
		"--follow":           "from_now=true&follow=true",
		"--follow --since 6": "after=6&follow=true",
	} {
		var b berth
		_, _, err := b.types(t, "table", strings.Fields(args)...)
		if len(b.asked) == 0 || b.asked[0] != want {
			t.Errorf("berth events %s asked for %q, want %q (%v)", args, b.asked, want, err)
		}
	}
	var b berth
	for _, since := range []string{"yesterday", "-1", "-2h"} {
		if _, _, err := b.types(t, "table", "--since="+since); command.ExitCode(err) != command.ExitUsage {
			t.Errorf("--since %s: %v", since, err)
		}
	}
	if _, _, err := b.types(t, "csv", "--follow"); command.ExitCode(err) != command.ExitUsage {
		t.Errorf("--follow -o csv: %v", err)
	}
	if len(b.asked) > 0 {
		t.Errorf("mistakes asked for %q", b.asked)
	}
}

func TestWhatItShows(t *testing.T) {
	t.Parallel()
	var b berth
	out, errOut, err := b.types(t, "table", "--since", "6", "--limit", "2")
	if err != nil || strings.Count(out, "change.approved") != 2 || !strings.Contains(out, "acme") || !strings.Contains(errOut, "--since 8") {
		t.Errorf("a list: %v\n%s%s", err, out, errOut)
	}
	for format, want := range map[string]string{"table": "change.approved", "json": `"id":"evt_1"`} {
		out, _, err := b.types(t, format, "--follow")
		if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.Contains(lines[1], want) || err == nil {
			t.Errorf("-o %s: %v\n%s", format, err, out)
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("-o %s lets through what a terminal obeys: %q", format, out)
		}
	}
}
