package logship_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
)

// stream is the other side: it keeps the rules of appending, with the same
// Decide as log-ingest, and the lines in memory. It is a Sink and, for another
// process, an HTTP handler.
type stream struct {
	mu      sync.Mutex
	head    logship.Head
	records []logship.Record
	end     *logship.End
	changed chan struct{}
	// fault is asked before each append: an error is answered after the append
	// when lost is set (the reply gets lost), else instead of it.
	fault func(call int) (err error, lost bool)
	calls int
}

func newStream() *stream {
	return &stream{head: logship.Start(), changed: make(chan struct{}), fault: func(int) (error, bool) { return nil, false }}
}

func (s *stream) Append(_ context.Context, b logship.Batch) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	err, lost := s.fault(s.calls)
	if err != nil && !lost {
		return 0, err
	}
	d, decideErr := s.head.Decide(b)
	if decideErr != nil {
		return 0, decideErr
	}
	switch d.Verdict {
	case logship.Gap:
		return 0, &logship.GapError{NextSeq: s.head.NextSeq, Hash: s.head.Hash}
	case logship.Conflict, logship.Inside:
		return 0, &logship.ConflictError{Head: s.head}
	case logship.Extends:
		for rest := d.New; len(rest) > 0; {
			var frame []byte
			frame, rest, _ = logship.CutFrame(rest)
			s.records = append(s.records, logship.DecodeFrame(frame))
		}
		s.head = d.After
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return s.head.NextSeq, err
}

func (s *stream) Finish(_ context.Context, end logship.End) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end.TotalLines >= s.head.NextSeq {
		return &logship.GapError{NextSeq: s.head.NextSeq, Hash: s.head.Hash}
	}
	if end.Hash != s.head.Hash {
		return &logship.ConflictError{Head: s.head}
	}
	s.end = &end
	return nil
}

// forget takes away the lines from next on, as a restored database does.
func (s *stream) forget(t *testing.T, next int64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var frames []byte
	s.records = s.records[:next-1]
	for _, r := range s.records {
		frames = logship.AppendFrame(frames, r)
	}
	head, _, err := logship.Start().Advance(frames, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.head = head
}

func (s *stream) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := make([]string, len(s.records))
	for i, r := range s.records {
		texts[i] = r.Text
	}
	return texts
}

// wait blocks until the stream has at least this many lines.
func (s *stream) wait(t *testing.T, lines int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		have, changed := len(s.records), s.changed
		s.mu.Unlock()
		if have >= lines {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("stream has %d lines, want %d", have, lines)
		}
	}
}

func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer blt_test" {
		writeJSON(w, http.StatusUnauthorized, logapi.Problem{Code: "unauthenticated"})
		return
	}
	if strings.HasSuffix(r.URL.Path, "/finish") {
		var body logapi.Finish
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			writeJSON(w, http.StatusBadRequest, logapi.Problem{Code: "invalid"})
			return
		}
		hash, _ := logship.ParseHash(body.Hash)
		s.answer(w, 0, s.Finish(r.Context(), logship.End{TotalLines: body.TotalLines, Hash: hash, LateRedaction: *body.LateRedaction}))
		return
	}
	first, _ := strconv.ParseInt(r.URL.Query().Get("first_seq"), 10, 64)
	prev, err := logship.ParseHash(r.URL.Query().Get("prev_hash"))
	if err != nil || r.Header.Get("Content-Encoding") != "zstd" {
		writeJSON(w, http.StatusBadRequest, logapi.Problem{Code: "invalid"})
		return
	}
	dec, err := zstd.NewReader(r.Body)
	if err != nil {
		panic(err)
	}
	defer dec.Close()
	frames, err := io.ReadAll(dec)
	if err != nil {
		panic(http.ErrAbortHandler) // the sender was killed
	}
	next, err := s.Append(r.Context(), logship.Batch{FirstSeq: first, PrevHash: prev, Frames: frames})
	s.answer(w, next, err)
}

func (s *stream) answer(w http.ResponseWriter, next int64, err error) {
	var gap *logship.GapError
	switch {
	case errors.As(err, &gap):
		writeJSON(w, http.StatusConflict, logapi.HeadProblem{Code: logship.CodeGap, NextSeq: gap.NextSeq})
	case errors.Is(err, logship.ErrConflict):
		writeJSON(w, http.StatusConflict, logapi.HeadProblem{Code: logship.CodeConflict})
	case errors.Is(err, logship.ErrClosed):
		writeJSON(w, http.StatusForbidden, logapi.Problem{Code: logship.CodeClosed})
	case err != nil:
		panic(http.ErrAbortHandler) // cuts the connection: the reply is lost
	case next > 0:
		writeJSON(w, http.StatusOK, logapi.Head{NextSeq: next})
	default:
		writeJSON(w, http.StatusOK, logapi.Stream{})
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	contentType := "application/json"
	if status >= 400 {
		contentType = "application/problem+json"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func wantLines(t *testing.T, got []string, lines int) {
	t.Helper()
	for i := range max(len(got), lines) {
		want := fmt.Sprintf("line %d", i+1)
		switch {
		case i >= len(got):
			t.Fatalf("got %d lines, want %d", len(got), lines)
		case i >= lines:
			t.Fatalf("line %d is one too many: %q", i+1, got[i])
		case got[i] != want:
			t.Fatalf("line %d: got %q, want %q", i+1, got[i], want)
		}
	}
}
