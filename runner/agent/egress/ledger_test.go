package egress_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ledger "github.com/berth-dev/berth/pkg/egress"
	"github.com/berth-dev/berth/runner/agent/egress"
)

type house struct {
	*testing.T
	dir    string
	now    time.Time
	ledger *egress.Ledger
	url    string
}

func open(t *testing.T, o egress.Options) *house {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(server.Close)
	h := &house{T: t, dir: o.Dir, now: time.Now(), url: server.URL}
	if h.dir == "" {
		h.dir = t.TempDir()
	}
	o.Dir, o.Log, o.Now = h.dir, slog.New(slog.NewTextHandler(t.Output(), nil)), func() time.Time { return h.now }
	l, err := egress.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	h.ledger = l
	return h
}

func (h *house) send(method, path string, body io.Reader) error {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), method, h.url+path, body)
	if err != nil {
		h.Fatal(err)
	}
	resp, err := h.ledger.Client(&http.Client{}).HTTP().Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (h *house) lines() (lines []ledger.Line) {
	h.Helper()
	if err := ledger.Read(h.dir, func(_ []byte, l ledger.Line) error { lines = append(lines, l); return nil }); err != nil {
		h.Fatal(err)
	}
	return lines
}

func TestLedger(t *testing.T) {
	t.Parallel()
	h := open(t, egress.Options{})
	if err := h.send(http.MethodPut, "/prefix/jobs/job1/result", strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []string{"a", "bb"} {
		if err := h.send(http.MethodPost, "/streams/str1/records", strings.NewReader(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	long := bytes.Repeat([]byte("x"), 3<<20)
	if err := h.send(http.MethodPut, "/v2/repo/blobs/uploads/1", io.MultiReader(bytes.NewReader(long))); err != nil {
		t.Fatal(err)
	}
	if got := h.lines(); len(got) != 3 || got[0].Class != "results" || got[0].About != "job1" || got[0].Digest != ledger.Digest([]byte("{}")) ||
		got[0].Schema != "runner-api/v1 ResultReport" || !got[1].Begun || got[2].Ends != got[1].Seq || got[2].Bytes != int64(len(long)) || got[2].Digest != ledger.Digest(long) {
		t.Errorf("lines = %+v, want the result, and the beginning and end of a push", got)
	}
	head, err := h.ledger.Sync()
	if err != nil {
		t.Fatal(err)
	}
	got := h.lines()
	if last := got[len(got)-1]; last.Class != egress.LogBodies || last.Count != 2 || last.Bytes != 3 ||
		last.Digest != ledger.Fold(ledger.Digest([]byte("a")), ledger.Digest([]byte("bb"))) {
		t.Errorf("count of log bodies = %+v", last)
	}
	report, err := ledger.Verify(h.dir, []ledger.Head{head})
	if err != nil || !report.OK() || report.Agreed != head.Seq {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}

// An agent that is killed has closed nothing.
func TestLedgerOfAKilledAgent(t *testing.T) {
	t.Parallel()
	h := open(t, egress.Options{})
	if err := h.send(http.MethodPost, "/jobs/claim", strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	if err := h.send(http.MethodPut, "/jobs/job1/result", strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.dir, "00000001.jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":2,"pr`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	again := open(t, egress.Options{Dir: h.dir})
	if _, err := again.ledger.Sync(); err != nil {
		t.Fatal(err)
	}
	got := again.lines()
	if len(got) != 2 || got[1].Class != "claims" || got[1].Count != 1 {
		t.Errorf("lines = %+v, want the result and the claim that was counted", got)
	}
	third := open(t, egress.Options{Dir: h.dir}) // nothing is counted twice
	if _, err := third.ledger.Sync(); err != nil {
		t.Fatal(err)
	}
	if report, err := ledger.Verify(h.dir, nil); err != nil || !report.OK() || report.Lines != 2 || len(third.lines()) != 2 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}

func TestLedgerRotates(t *testing.T) {
	t.Parallel()
	h := open(t, egress.Options{FileBytes: 2000, Files: 2})
	var middle ledger.Head
	for i := range 40 {
		if err := h.send(http.MethodPut, "/jobs/job"+strings.Repeat("x", i)+"/result", strings.NewReader("{}")); err != nil {
			t.Fatal(err)
		}
		if i == 20 {
			middle, _ = h.ledger.Sync()
		}
	}
	head, err := h.ledger.Sync()
	if err != nil {
		t.Fatal(err)
	}
	if files, _ := ledger.Files(h.dir); len(files) != 2 {
		t.Errorf("%d files, want 2", len(files))
	}
	report, err := ledger.Verify(h.dir, []ledger.Head{middle, head})
	if err != nil || !report.OK() || report.First == 1 || report.Totals["results"].Count != 40 {
		t.Errorf("Verify = %+v, %v; want 40 results, of which the first are only counted", report, err)
	}
	if err := h.ledger.Close(); err != nil {
		t.Error(err)
	}
	again := open(t, egress.Options{Dir: h.dir, FileBytes: 2000, Files: 2})
	for i := range 10 {
		if err := again.send(http.MethodPut, "/runs/run"+strings.Repeat("x", i), strings.NewReader("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if report, err = ledger.Verify(h.dir, nil); err != nil || !report.OK() || report.Totals["results"].Count != 40 || report.Totals["runs"].Count != 10 {
		t.Errorf("after a restart: Verify = %+v, %v", report, err)
	}
}

func TestAttackRewrittenLedger(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(lines []string) []string
		want   string
	}{
		"edited":      {func(l []string) []string { l[1] = strings.Replace(l[1], "job2", "jobX", 1); return l }, "was changed"},
		"left out":    {func(l []string) []string { return append(l[:1], l[2:]...) }, "lines are missing"},
		"cut":         {func(l []string) []string { return l[:3] }, "it was cut"},
		"last edited": {func(l []string) []string { l[4] = strings.Replace(l[4], "job5", "jobX", 1); return l }, "was rewritten"},
		"beheaded":    {func(l []string) []string { return l[1:] }, "earlier lines are missing"},
		"no JSON":     {func(l []string) []string { l[2] = "{"; return l }, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, egress.Options{})
			for _, job := range []string{"job1", "job2", "job3", "job4", "job5"} {
				if err := h.send(http.MethodPut, "/jobs/"+job+"/result", strings.NewReader("{}")); err != nil {
					t.Fatal(err)
				}
			}
			head, err := h.ledger.Sync()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(h.dir, "00000001.jsonl")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := tc.change(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))
			if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			report, err := ledger.Verify(h.dir, []ledger.Head{head})
			if err != nil || !strings.Contains(report.Problem, tc.want) {
				t.Errorf("Verify = %+v, %v; want a problem with %q", report, err, tc.want)
			}
		})
	}
}

func TestAttackRequestWithoutAClass(t *testing.T) {
	t.Parallel()
	h := open(t, egress.Options{})
	for _, call := range []string{"POST /exfiltrate", "DELETE /chain", "PUT /jobs/claim", "GET /streams/s/records"} {
		method, path, _ := strings.Cut(call, " ")
		if err := h.send(method, path, strings.NewReader("x")); !errors.Is(err, egress.ErrNoClass) {
			t.Errorf("%s: %v, want ErrNoClass", call, err)
		}
	}
}

// What is sent again and again while nobody answers is counted, not listed.
func TestLedgerCountsRepeats(t *testing.T) {
	t.Parallel()
	h := open(t, egress.Options{})
	for range 100 {
		if err := h.send(http.MethodPut, "/jobs/job1/result", strings.NewReader("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.ledger.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := h.lines(); len(got) != 2 || got[1].Count != 99 {
		t.Errorf("lines = %+v, want one and a count of 99", got)
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "egress-off.json")
	s := egress.At(path)
	if s.Off(egress.LogBodies) {
		t.Error("off without a file")
	}
	if _, err := egress.Set(path, egress.Switched{Class: "results"}, true); err == nil {
		t.Error("results can be switched off")
	}
	if changed, err := egress.Set(path, egress.Switched{Class: egress.LogBodies, By: "ada"}, true); err != nil || !changed || !s.Off(egress.LogBodies) || s.Off(egress.Metrics) {
		t.Errorf("after off: changed %v, %v", changed, err)
	}
	if changed, err := egress.Set(path, egress.Switched{Class: egress.LogBodies}, false); err != nil || !changed || s.Off(egress.LogBodies) {
		t.Errorf("after on: changed %v, %v", changed, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.All(); err == nil || !s.Off(egress.LogBodies) || !s.Off(egress.Metrics) {
		t.Errorf("of a file that cannot be read everything is off: %v", err)
	}
}

func BenchmarkLedger(b *testing.B) {
	for name, call := range map[string]string{"counted": "/streams/s/records", "line": "/jobs/%/result"} {
		b.Run(name, func(b *testing.B) {
			l, err := egress.Open(egress.Options{Dir: b.TempDir(), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			client := l.Client(&http.Client{Transport: nowhere{}}).HTTP()
			body := strings.Repeat("x", 4096)
			for i := range b.N {
				method := http.MethodPost
				if name == "line" {
					method = http.MethodPut
				}
				path := strings.Replace(call, "%", strings.Repeat("y", i%97)+string(rune('a'+i%26)), 1)
				req, _ := http.NewRequestWithContext(b.Context(), method, "http://x"+path, strings.NewReader(body+path+time.Now().String()))
				resp, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
		})
	}
}

type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}
