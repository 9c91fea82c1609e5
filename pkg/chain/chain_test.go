package chain_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func signer(id string, seed byte) chain.Signer {
	return chain.Signer{
		Chain: id,
		Key:   ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)),
		Now:   func() time.Time { return start },
	}
}

func keysOf(s chain.Signer) map[string]ed25519.PublicKey {
	pub := s.Key.Public().(ed25519.PublicKey)
	return map[string]ed25519.PublicKey{capsule.KeyID(pub): pub}
}

func intent(what string) chain.Record {
	return chain.Record{Actor: "usr_1", Kind: chain.Intent, What: what, Effect: "sha256:e", Capsule: "sha256:c", Job: "job_1"}
}

func outcome(of int64, result string) chain.Record {
	return chain.Record{Actor: "runner", Kind: chain.Outcome, What: "done", Intent: of, Result: result}
}

func event(what string) chain.Record {
	return chain.Record{Actor: "customer", Kind: chain.Event, What: what}
}

// lines makes a chain in memory.
func lines(t *testing.T, s chain.Signer, records ...chain.Record) []chain.Line {
	t.Helper()
	var out []chain.Line
	var head chain.Head
	for _, r := range records {
		line, err := chain.Next(head, r, s)
		if err != nil {
			t.Fatal(err)
		}
		out, head = append(out, line), line.Head
	}
	return out
}

func file(ls []chain.Line) []byte {
	var b bytes.Buffer
	for _, l := range ls {
		b.Write(append(bytes.Clone(l.Raw), '\n'))
	}
	return b.Bytes()
}

func open(t *testing.T, path string, s chain.Signer) *chain.Writer {
	t.Helper()
	w, err := chain.Open(path, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func TestWriterStoresWhatVerifies(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chain.jsonl")
	s := signer("ins_1", 1)
	w := open(t, path, s)
	for i, r := range []chain.Record{event("enrolled"), intent("deploy <api> & db"), outcome(2, "applied"), intent("deploy db")} {
		head, err := w.Append(t.Context(), r)
		if err != nil || head.Seq != int64(i+1) || head != w.Head() {
			t.Fatalf("Append %d = %+v, %v", i, head, err)
		}
	}
	kept := w.SignedHead()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	report, err := chain.Verify(bytes.NewReader(raw), chain.VerifyOptions{Chain: "ins_1", Keys: keysOf(s), Heads: []chain.SignedHead{kept}})
	if err != nil {
		t.Fatal(err)
	}
	unfinished := w.OpenIntents()
	if len(unfinished) != 1 || unfinished[0].Seq != 4 || unfinished[0].What != "deploy db" {
		t.Errorf("OpenIntents = %+v", unfinished)
	}
	want := chain.Report{Chain: "ins_1", Records: 4, Head: w.Head(), Signed: true, HeadsAgreed: 1, HeadsSigned: true, LastAgreed: 4, Effects: 2, Unfinished: report.Unfinished, Keys: report.Keys, Writer: kept.KeyID}
	if diff := cmp.Diff(want, report); diff != "" || len(report.Unfinished) != 1 || report.Unfinished[0].Seq != 4 {
		t.Errorf("report (-want +got):\n%s", diff)
	}

	// What is read back is what is stored, and a part verifies after its head.
	part, err := w.ReadFrom(3, 10)
	if err != nil || len(part) != 2 || !bytes.HasSuffix(raw, file(part)) {
		t.Fatalf("ReadFrom(3) = %d lines, %v", len(part), err)
	}
	first, err := w.ReadFrom(0, 2)
	if err != nil || len(first) != 2 || !bytes.HasPrefix(raw, file(first)) {
		t.Fatalf("ReadFrom(0, 2) = %d lines, %v", len(first), err)
	}
	if none, err := w.ReadFrom(5, 10); err != nil || len(none) != 0 {
		t.Errorf("ReadFrom(5) = %d lines, %v", len(none), err)
	}
	report, err = chain.Verify(bytes.NewReader(file(part)), chain.VerifyOptions{After: first[1].Head, Keys: keysOf(s)})
	if err != nil || !report.OK() || report.Records != 2 || report.Head != w.Head() {
		t.Errorf("Verify of a part = %+v, %v", report, err)
	}
}

func TestWriterGoesOnAfterReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chain.jsonl")
	s := signer("ins_1", 1)
	w := open(t, path, s)
	if _, err := w.Append(t.Context(), intent("deploy api")); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Open(path, s); !errors.Is(err, chain.ErrBusy) {
		t.Errorf("second writer: %v, want ErrBusy", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), event("x")); !errors.Is(err, chain.ErrBroken) {
		t.Errorf("Append after Close: %v, want ErrBroken", err)
	}
	w = open(t, path, s)
	if open := w.OpenIntents(); len(open) != 1 || open[0].What != "deploy api" {
		t.Errorf("OpenIntents after reopen = %+v", open)
	}
	head, err := w.Append(t.Context(), outcome(1, "uncertain"))
	if err != nil || head.Seq != 2 || len(w.OpenIntents()) != 0 {
		t.Errorf("Append after reopen = %+v, %v", head, err)
	}
}

func TestTornLineIsCutAtEveryByte(t *testing.T) {
	t.Parallel()
	s := signer("ins_1", 1)
	ls := lines(t, s, event("one"), event("two"))
	whole := file(ls)
	first := len(ls[0].Raw) + 1
	dir := t.TempDir()
	for cut := first + 1; cut < len(whole); cut++ {
		path := filepath.Join(dir, fmt.Sprint(cut))
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := chain.Open(path, s)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		want := &chain.Torn{Offset: int64(first), Bytes: whole[first:cut]}
		if diff := cmp.Diff(want, w.Torn()); diff != "" {
			t.Fatalf("cut at %d, Torn (-want +got):\n%s", cut, diff)
		}
		_, err = w.Append(t.Context(), event("two"))
		_ = w.Close()
		if got, _ := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
			t.Fatalf("cut at %d: appended again, the file is another: %v", cut, err)
		}
	}
}

func TestZeroedLastLineIsCut(t *testing.T) {
	t.Parallel()
	s := signer("ins_1", 1)
	ls := lines(t, s, event("one"), event("two"))
	first := len(ls[0].Raw) + 1
	raw := file(ls)
	clear(raw[first : first+100])
	path := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if w := open(t, path, s); w.Torn() == nil || w.Head() != ls[0].Head {
		t.Errorf("Torn = %v, head %+v", w.Torn(), w.Head())
	}
}

func TestOpenRefusesWhatIsNotItsChain(t *testing.T) {
	t.Parallel()
	s := signer("ins_1", 1)
	ls := lines(t, s, event("one"), event("two"), event("three"))
	other := lines(t, signer("ins_2", 1), event("one"))
	stranger := lines(t, signer("ins_1", 2), event("one"))
	tests := map[string][]byte{
		"changed in the middle":  bytes.Replace(file(ls), []byte(`"two"`), []byte(`"TWO"`), 1),
		"record removed":         file([]chain.Line{ls[0], ls[2]}),
		"zeros in the middle":    bytes.Replace(file(ls), []byte(`"two"`), []byte("\x00\x00\x00\x00\x00"), 1),
		"another chain's":        file(other),
		"another writer's":       file(stranger),
		"not a chain":            []byte("hello\n"),
		"last record is changed": bytes.Replace(file(ls), []byte(`"three"`), []byte(`"THREE"`), 1),
	}
	for name, raw := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "c")
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := chain.Open(path, s); !errors.Is(err, chain.ErrCorrupt) {
				t.Errorf("Open: %v, want ErrCorrupt", err)
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, raw) {
				t.Error("Open changed the file")
			}
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	w := open(t, filepath.Join(t.TempDir(), "c"), signer("ins_1", 1))
	if _, err := w.Append(t.Context(), intent("deploy")); err != nil {
		t.Fatal(err)
	}
	head := w.Head()
	tests := map[string]chain.Record{
		"unknown kind":             {Actor: "a", What: "w", Kind: "note"},
		"intent without effect":    {Actor: "a", What: "w", Kind: chain.Intent},
		"outcome of nothing":       outcome(0, "applied"),
		"outcome of what is not":   outcome(9, "applied"),
		"outcome without result":   outcome(1, ""),
		"event naming an intent":   {Actor: "a", What: "w", Kind: chain.Event, Intent: 1},
		"nobody did it":            {What: "w", Kind: chain.Event},
		"anchor without head":      {Actor: "a", What: "w", Kind: chain.Anchor},
		"anchor of the same chain": {Actor: "a", What: "w", Kind: chain.Anchor, Anchored: &chain.SignedHead{Chain: "ins_1"}},
		"too long":                 {Actor: "a", What: "w", Kind: chain.Event, Detail: strings.Repeat("x", 1<<20)},
	}
	for name, r := range tests {
		if _, err := w.Append(t.Context(), r); !errors.Is(err, chain.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Append(ctx, event("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if w.Head() != head {
		t.Errorf("a refused record moved the head to %+v", w.Head())
	}
	if _, err := w.Append(t.Context(), outcome(1, "applied")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), outcome(1, "failed")); !errors.Is(err, chain.ErrInvalid) {
		t.Errorf("second outcome: %v, want ErrInvalid", err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c")
	s := signer("ins_1", 1)
	w := open(t, path, s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				head, err := w.Append(t.Context(), intent("deploy"))
				if err == nil {
					_, err = w.Append(t.Context(), outcome(head.Seq, "applied"))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	raw, _ := os.ReadFile(path)
	report, err := chain.Verify(bytes.NewReader(raw), chain.VerifyOptions{Keys: keysOf(s)})
	if err != nil || !report.OK() || report.Records != 80 || len(report.Unfinished) != 0 {
		t.Errorf("report %+v, %v", report, err)
	}
}

func TestVerifyNamesTheFirstBadRecord(t *testing.T) {
	t.Parallel()
	s, vendor := signer("ins_1", 1), signer("org_1", 9)
	anchor := func(seq int64, hash string, by chain.Signer) chain.Record {
		h := chain.SignHead(chain.Head{Seq: seq, Hash: hash}, by)
		return chain.Record{Actor: "runner", Kind: chain.Anchor, What: "head of org", Anchored: &h}
	}
	good := lines(t, s, event("one"), intent("two"), outcome(2, "applied"), anchor(5, "sha256:h", vendor), event("five"))
	forged := lines(t, signer("ins_1", 2), event("one"), intent("two"), outcome(2, "applied"))
	rewritten := lines(t, s, event("one"), intent("other"), outcome(2, "applied"), event("four"), event("five"))
	kept := func(ls []chain.Line, seq int) []chain.SignedHead {
		return []chain.SignedHead{chain.SignHead(ls[seq-1].Head, s)}
	}
	byKeeper := func(h chain.Head) []chain.SignedHead {
		return []chain.SignedHead{chain.SignHead(h, signer("ins_1", 9))}
	}
	change := func(from, to string) []byte { return bytes.Replace(file(good), []byte(from), []byte(to), 1) }
	withKeys := chain.VerifyOptions{Keys: keysOf(s)}
	tests := []struct {
		name    string
		in      []byte
		options chain.VerifyOptions
		bad     int64
		problem string // part of it; "" means the chain is good
	}{
		{"good", file(good), withKeys, 0, ""},
		{"good without keys", file(good), chain.VerifyOptions{}, 0, ""},
		{"good with a kept head", file(good), chain.VerifyOptions{Keys: keysOf(s), Heads: kept(good, 4)}, 0, ""},
		{"good with the anchored writer", file(good), chain.VerifyOptions{AnchorKeys: keysOf(vendor)}, 0, ""},
		{"empty", nil, withKeys, 0, ""},
		{"text changed", change(`"one"`, `"ONE"`), withKeys, 1, "not signed"},
		{"text changed, no keys: seen at the next", change(`"one"`, `"ONE"`), chain.VerifyOptions{}, 2, "does not follow"},
		{"last text changed", change(`"five"`, `"FIVE"`), withKeys, 5, "not signed"},
		{"one byte of a signature", change(`==`, `A=`), withKeys, 1, "not signed"},
		{"space added", change(`{"chain"`, `{ "chain"`), withKeys, 1, "not signed"},
		{"field added after the signature", change(`"}`, `","x":""}`), withKeys, 1, "unknown field"},
		{"record removed", file([]chain.Line{good[0], good[2]}), withKeys, 2, "has number 3"},
		{"first removed", file(good[1:]), withKeys, 1, "has number 2"},
		{"records swapped", file([]chain.Line{good[0], good[2], good[1]}), withKeys, 2, "has number 3"},
		{"record twice", file([]chain.Line{good[0], good[0]}), withKeys, 2, "has number 1"},
		{"all made by another key", file(forged), withKeys, 1, "not signed"},
		{"another chain wanted", file(good), chain.VerifyOptions{Chain: "ins_2"}, 1, "belongs to chain"},
		{"another chain's record", file(append(good[:1:1], lines(t, signer("ins_2", 1), event("x"), event("y"))[1])), withKeys, 2, "belongs to chain"},
		{"cut inside a line", file(good)[:len(file(good))-3], withKeys, 5, "cut off"},
		{"empty line", append(file(good), '\n'), withKeys, 6, "invalid"},
		{"two values in a line", append(file(good), []byte("{} {}\n")...), withKeys, 6, "invalid"},
		{"rewritten by its own writer", file(rewritten), chain.VerifyOptions{Keys: keysOf(s), Heads: kept(good, 3)}, 3, "rewritten"},
		{"records cut off the end", file(good[:3]), chain.VerifyOptions{Keys: keysOf(s), Heads: kept(good, 5)}, 4, "is missing"},
		{"everything cut off", nil, chain.VerifyOptions{Heads: kept(good, 5)}, 0, "none of the kept heads"},
		{"kept head is of another chain", file(good), chain.VerifyOptions{Heads: []chain.SignedHead{chain.SignHead(good[4].Head, vendor)}}, 0, "none of the kept heads"},
		{"kept head is forged", file(good), chain.VerifyOptions{Keys: keysOf(s), HeadKeys: keysOf(vendor), Heads: []chain.SignedHead{chain.SignHead(good[4].Head, signer("ins_1", 3))}}, 0, "not to be trusted"},
		{"kept head is signed by its keeper", file(good), chain.VerifyOptions{Keys: keysOf(s), HeadKeys: keysOf(vendor), Heads: byKeeper(good[4].Head)}, 0, ""},
		{"kept head is signed by its keeper, whose key is not given", file(good), chain.VerifyOptions{Keys: keysOf(s), Heads: byKeeper(good[4].Head)}, 0, ""},
		{"the same, of a chain that was cut", file(good[:3]), chain.VerifyOptions{Keys: keysOf(s), Heads: byKeeper(good[4].Head)}, 4, "is missing"},
		{"kept head was changed", file(good), chain.VerifyOptions{Keys: keysOf(s), Heads: []chain.SignedHead{{Chain: "ins_1", Head: good[3].Head, KeyID: kept(good, 5)[0].KeyID, Sig: kept(good, 5)[0].Sig}}}, 0, "not to be trusted"},
		{"outcome without intent", file(lines(t, s, event("one"), outcome(1, "applied"))), withKeys, 2, "not an intent"},
		{"two outcomes of one intent", file(lines(t, s, intent("one"), outcome(1, "applied"), outcome(1, "failed"))), withKeys, 3, "not an intent"},
		{"anchored chain went back", file(lines(t, s, anchor(5, "sha256:h", vendor), anchor(4, "sha256:g", vendor))), withKeys, 2, "rewritten"},
		{"anchored chain forked", file(lines(t, s, anchor(5, "sha256:h", vendor), anchor(5, "sha256:g", vendor))), withKeys, 2, "rewritten"},
		{"anchor signed by nobody known", file(lines(t, s, anchor(5, "sha256:h", signer("org_1", 3)))), chain.VerifyOptions{AnchorKeys: keysOf(vendor)}, 1, "unknown key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report, err := chain.Verify(bytes.NewReader(tt.in), tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if report.FirstBad != tt.bad || report.OK() != (tt.problem == "") || !strings.Contains(report.Problem, tt.problem) {
				t.Errorf("bad record %d: %q, want %d: %q", report.FirstBad, report.Problem, tt.bad, tt.problem)
			}
		})
	}
}

func TestVerifyHead(t *testing.T) {
	t.Parallel()
	s := signer("ins_1", 1)
	h := chain.SignHead(chain.Head{Seq: 3, Hash: "sha256:h"}, s)
	if err := chain.VerifyHead(keysOf(s), h); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*chain.SignedHead){
		"seq":   func(h *chain.SignedHead) { h.Seq++ },
		"hash":  func(h *chain.SignedHead) { h.Hash = "sha256:g" },
		"chain": func(h *chain.SignedHead) { h.Chain = "ins_2" },
		"time":  func(h *chain.SignedHead) { h.Time = h.Time.Add(1) },
		"key":   func(h *chain.SignedHead) { h.KeyID = "x" },
		"sig":   func(h *chain.SignedHead) { h.Sig = "" },
	} {
		changed := h
		change(&changed)
		if err := chain.VerifyHead(keysOf(s), changed); !errors.Is(err, chain.ErrHead) {
			t.Errorf("%s changed: %v, want ErrHead", name, err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	w, err := chain.Open(filepath.Join(b.TempDir(), "c"), signer("ins_1", 1))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	for b.Loop() {
		if _, err := w.Append(b.Context(), event("something")); err != nil {
			b.Fatal(err)
		}
	}
}
