package api_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// logs is a log-ingest that tells what it was asked, and follows a stream without end.
func logs(t *testing.T) (address string, asked <-chan *http.Request) {
	t.Helper()
	all := make(chan *http.Request, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all <- r
		w.Header().Set("Set-Cookie", "berth=planted")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if !strings.HasSuffix(r.URL.Path, "/tail") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"records":[]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: first\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL, all
}

func TestLogsOfTheDashboard(t *testing.T) {
	t.Parallel()
	address, asked := logs(t)
	d := newDoorWith(t, func(w *wiring) { w.logURL = address })
	admin := d.org("initech")
	browser := d.browser(admin.token)
	_, session, _ := strings.Cut(browser.cookie, "=")

	status, header, body := browser.raw("GET", "/logs/streams/str_1/records?after=4&limit=2", "",
		"Last-Event-ID", "7", "X-Forwarded-For", "10.0.0.1", "Connection", "Authorization", "Traceparent", "made-up")
	if status != http.StatusOK || string(body) != `{"records":[]}` {
		t.Fatalf("answered %d: %s", status, body)
	}
	got := <-asked
	want := http.Header{"Authorization": {"Bearer " + session}, "Last-Event-Id": {"7"}}
	if diff := cmp.Diff(want, got.Header); diff != "" || got.URL.String() != "/streams/str_1/records?after=4&limit=2" {
		t.Errorf("log-ingest was asked %s with other headers:\n%s", got.URL, diff)
	}
	if header.Get("Set-Cookie") != "" || header.Get("Access-Control-Allow-Origin") != "" || len(header.Values("Request-Id")) != 1 || !strings.HasPrefix(header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("the browser gets %v", header)
	}
	if status, _, _ := admin.raw("GET", "/logs/streams/str_1", ""); status != http.StatusOK || (<-asked).Header.Get("Authorization") != "Bearer "+admin.token {
		t.Errorf("with a token: %d", status)
	}

	for _, tt := range []struct {
		name, method, path string
		who                caller
		header             []string
		want               int
	}{
		{"nobody", "GET", "/logs/streams/str_1", d.as(""), nil, 401},
		{"another site", "GET", "/logs/streams/str_1", browser, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"append", "POST", "/logs/streams/str_1/records", browser, nil, 405},
		{"outside of streams", "GET", "/logs/healthz", browser, nil, 404},
		{"up", "GET", "/logs/streams/../healthz", browser, nil, 404},
		{"up, escaped", "GET", "/logs/streams/%2e%2e/healthz", browser, nil, 404},
		{"up, escaped whole", "GET", "/logs/streams/x%2f..%2f..%2fhealthz", browser, nil, 404},
		{"a session as a bearer", "GET", "/logs/streams/str_1", d.as(session), nil, 401},
		{"a secret in the query", "GET", "/logs/streams/str_1?x=" + session, browser, nil, 422},
	} {
		if status, _, answer := tt.who.raw(tt.method, tt.path, "", tt.header...); status != tt.want {
			t.Errorf("%s: answered %d, want %d: %s", tt.name, status, tt.want, answer)
		}
	}
	if len(asked) != 0 {
		t.Errorf("log-ingest was asked for %s", (<-asked).URL)
	}
	viewer := admin.member(ctlapi.MemberRequest{Name: "vic", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleViewer})
	if status, _, _ := viewer.raw("GET", "/logs/streams/str_1", ""); status != http.StatusOK {
		t.Errorf("a viewer gets %d", status)
	}
}

// A stream comes line by line, and ends with the session that follows it.
func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	address, _ := logs(t)
	d := newDoorWith(t, func(w *wiring) { w.logURL = address })
	admin := d.org("initech")
	browser := d.browser(admin.token)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/logs/streams/str_1/tail", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", browser.cookie)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); line != "data: first\n" {
		t.Fatalf("read %q: %v", line, err)
	}
	began := time.Now()
	ended, err := admin.EndBrowserSessionWithResponse(t.Context(), browser.me().TokenID)
	must(t, ended, err, http.StatusNoContent)
	if _, err := io.ReadAll(lines); err == nil && ctx.Err() != nil {
		t.Error("the stream goes on")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stream ended after %s", took)
	}
}

func TestLogsAreAway(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	d := newDoorWith(t, func(w *wiring) { w.logURL = gone.URL })
	if status, _, answer := d.org("initech").raw("GET", "/logs/streams/str_1", ""); status != http.StatusServiceUnavailable || strings.Contains(string(answer), gone.URL) {
		t.Errorf("answered %d: %s", status, answer)
	}
}
