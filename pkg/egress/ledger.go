package egress

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// MaxLine bounds a line, in bytes.
const MaxLine = 64 << 10

// Line is one entry of a ledger.
type Line struct {
	Seq  int64  `json:"seq"`  // 1, 2, 3, …
	Prev string `json:"prev"` // hash of the line before, "" for the first
	// From and Until are when the first and the last of the requests left.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Class string    `json:"class"`
	// Schema names the form of what left, and its version.
	Schema string `json:"schema"`
	To     string `json:"to"` // host, with its port
	// About is the job, run, stream or resource that the request names, if any.
	About string `json:"about,omitempty"`
	// Count is how many requests the line stands for, Bytes how long their bodies were
	// together.
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
	// Digest is the SHA-256 of the body; for several see Fold.
	Digest string `json:"digest"`
	// Begun: the body was only beginning to leave. A line with Ends follows, unless
	// the agent died.
	Begun bool `json:"begun,omitempty"`
	// Ends is the number of the line with Begun that this one ends.
	Ends int64 `json:"ends,omitempty"`
	// Unwritten is how many requests before this line could not be written down.
	Unwritten int64 `json:"unwritten,omitempty"`
	// Totals are those of all lines before, by class, at the beginning of each file.
	Totals map[string]Total `json:"totals,omitempty"`
}

// Total is what left of one class.
type Total struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

// Head names the last line.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// ClassTotals is the class of lines that only carry totals.
const ClassTotals = "totals"

// Digest of a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Fold is the digest of several bodies: that of those before, a line feed, and that
// of the next one. The first is its own.
func Fold(before, next string) string {
	if before == "" {
		return next
	}
	return Digest([]byte(before + "\n" + next))
}

// Next makes the line that l becomes behind head.
func Next(head Head, l Line) (raw []byte, after Head, err error) {
	l.Seq, l.Prev = head.Seq+1, head.Hash
	if raw, err = json.Marshal(l); err != nil {
		return nil, head, err
	}
	if len(raw) > MaxLine {
		return nil, head, fmt.Errorf("line of the egress ledger has %d bytes, at most %d", len(raw), MaxLine)
	}
	return raw, Head{Seq: l.Seq, Hash: Digest(raw)}, nil
}

// AnchorWhat is what an event of the chain says that carries the head of a ledger.
const AnchorWhat = "egress ledger"

// AnchorDetail is the detail of such an event.
func AnchorDetail(h Head) string { return fmt.Sprintf("line %d %s", h.Seq, h.Hash) }

// ParseAnchor reads such a detail.
func ParseAnchor(detail string) (h Head, ok bool) {
	n, err := fmt.Sscanf(detail, "line %d %s", &h.Seq, &h.Hash)
	return h, err == nil && n == 2 && AnchorDetail(h) == detail
}

// Report is what Verify found.
type Report struct {
	// First is the number of the first line that is there: earlier ones were
	// dropped to make room, and Before is the hash of the last of them.
	First  int64            `json:"first"`
	Before string           `json:"before,omitempty"`
	Lines  int64            `json:"lines"`
	Head   Head             `json:"head"`
	Totals map[string]Total `json:"totals"`
	// Unwritten is how many requests could not be written down.
	Unwritten int64 `json:"unwritten"`
	// Agreed is the last line that an anchor covers; Anchors how many there are of
	// lines that are still there.
	Agreed  int64 `json:"agreed"`
	Anchors int   `json:"anchors"`

	Problem string `json:"problem,omitempty"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return r.Problem == "" }

// Files are the files of a ledger in their order.
func Files(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	slices.Sort(files)
	return files, err
}

// Verify reads the ledger in dir and compares it with the anchors of its install's
// chain. The error is about reading.
func Verify(dir string, anchors []Head) (Report, error) {
	v := verifier{report: Report{Totals: map[string]Total{}}, hashes: map[int64]string{}}
	wanted := map[int64]bool{}
	for _, a := range anchors {
		wanted[a.Seq] = true
	}
	v.wanted = wanted
	err := Read(dir, v.line)
	if v.report.Problem == "" && err == nil {
		v.compare(anchors)
	}
	if errors.Is(err, errBad) {
		err = nil
	}
	return v.report, err
}

// errBad ends the reading of a ledger in which something is wrong.
var errBad = errors.New("bad line")

// Read calls each with the lines of a ledger, oldest first.
func Read(dir string, each func(raw []byte, l Line) error) error {
	files, err := Files(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := readFile(file, each); err != nil {
			return err
		}
	}
	return nil
}

func readFile(file string, each func([]byte, Line) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, MaxLine+1)
	for {
		raw, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(raw) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return nil // a crash cut it, or it is being written
		case err != nil:
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		raw = raw[:len(raw)-1]
		var l Line
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			l = Line{Seq: -1}
		}
		if err := each(raw, l); err != nil {
			return err
		}
	}
}

type verifier struct {
	report Report
	wanted map[int64]bool
	hashes map[int64]string
}

func (v *verifier) bad(format string, args ...any) error {
	v.report.Problem = fmt.Sprintf(format, args...)
	return errBad
}

func (v *verifier) line(raw []byte, l Line) error {
	r := &v.report
	switch {
	case l.Seq < 1:
		return v.bad("a line behind line %d cannot be read", r.Head.Seq)
	case r.Lines == 0:
		r.First, r.Before = l.Seq, l.Prev
		if l.Seq == 1 && l.Prev != "" || l.Seq > 1 && (l.Prev == "" || l.Class != ClassTotals) {
			return v.bad("line %d is the first, and does not begin a file: earlier lines are missing", l.Seq)
		}
		maps.Copy(r.Totals, l.Totals)
	case l.Seq != r.Head.Seq+1:
		return v.bad("line %d follows line %d: lines are missing", l.Seq, r.Head.Seq)
	case l.Prev != r.Head.Hash:
		return v.bad("line %d does not follow line %d as it is here: one of them was changed", l.Seq, r.Head.Seq)
	case l.Class == ClassTotals && !maps.Equal(l.Totals, r.Totals):
		return v.bad("line %d has other totals than the lines before it", l.Seq)
	}
	r.Lines++
	r.Head = Head{Seq: l.Seq, Hash: Digest(raw)}
	r.Unwritten += l.Unwritten
	if v.wanted[l.Seq] {
		v.hashes[l.Seq] = r.Head.Hash
	}
	Add(r.Totals, l)
	return nil
}

// Add counts a line.
func Add(totals map[string]Total, l Line) {
	if l.Class == ClassTotals || l.Begun {
		return
	}
	t := totals[l.Class]
	totals[l.Class] = Total{Count: t.Count + l.Count, Bytes: t.Bytes + l.Bytes}
}

func (v *verifier) compare(anchors []Head) {
	r := &v.report
	slices.SortFunc(anchors, func(a, b Head) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, a := range anchors {
		switch {
		case a.Seq > r.Head.Seq:
			r.Problem = fmt.Sprintf("the chain knows of line %d, and the ledger ends with line %d: it was cut", a.Seq, r.Head.Seq)
			return
		case a.Seq == r.First-1 && a.Hash != r.Before, a.Seq >= r.First && v.hashes[a.Seq] != a.Hash:
			r.Problem = fmt.Sprintf("line %d is not the one that the chain knows: the ledger was rewritten", a.Seq)
			return
		case a.Seq >= r.First-1:
			r.Agreed = a.Seq
			r.Anchors++
		}
	}
}
