// Command berth-verify checks a chain of Berth offline: whether each record
// follows the one before, is signed, and agrees with the heads that others
// kept, and which effects have no recorded outcome. It also checks a release of
// Berth against its signed list. It needs the files and nothing else; it opens no network connection and writes no file.
package main

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/pkg/visible"
)

// Exit codes.
const (
	exitOK    = 0
	exitBad   = 1  // the chain is bad or cannot be read
	exitUsage = 64 // as everywhere in Berth
)

const usage = `berth-verify chain FILE [--key FILE] [--head FILE] [--head-key FILE] [--anchor-key FILE]
                         [--keys] [-o text|json]
berth-verify release FILE --key FILE
berth-verify disclosure NAME.release.json --key FILE
berth-verify evidence DIR [--key FILE] [--head FILE] [--head-key FILE] [-o text|json]

Checks a chain, as "berth-runner" writes it, without any network. FILE may be
"-" for standard input.

  --key FILE         public key of the chain's writer: of the first machine, or of the one
                     that writes now, for which the recovery key signed; may be repeated
  --head FILE        heads that somebody else kept: signed heads, or that side's own
                     chain with its anchors, as JSON lines; may be repeated
  --head-key FILE    public key of who signed these heads, when that is not the chain's
                     writer: the control plane signs what it anchors; may be repeated
  --anchor-key FILE  public key of the writer of the chains anchored in FILE

A FILE with keys is PEM, base64, or a runner's trust.json, whose dispatch keys count.

  -o text|json       what to print (text)
  --keys             also say from when to when each key stands behind the chain; -o json always does

"release" checks the signed list of a release, release.json, and the files next to it. The
key must come from somewhere else than the list.

"evidence" checks a folder of berth-runner evidence: every file against the signed index, and
the files against each other. --key is the machine's, from berth-runner chain key.

"disclosure" checks that the customer released exactly the bytes of NAME, which is next to the
file. --key is a trust.json with consent holders, a holder's public key, or the machine's.

Exit codes: 0 the chain is good, 1 it is not, 64 wrong usage.
`

func main() {
	// What chains say was written by others: nothing of it steers the terminal.
	stdout, stderr := visible.NewWriter(os.Stdout), visible.NewWriter(os.Stderr)
	code := run(os.Args[1:], os.Stdin, stdout, stderr)
	_ = stdout.Flush() // there is nobody to report it to
	_ = stderr.Flush()
	os.Exit(code)
}

// files is a flag that may be repeated.
type files []string

func (f *files) String() string     { return fmt.Sprint(*f) }
func (f *files) Set(v string) error { *f = append(*f, v); return nil }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var keys, headKeys, anchorKeys, heads files
	var format string
	var withKeys bool
	flags := flag.NewFlagSet("berth-verify", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Var(&keys, "key", "")
	flags.Var(&anchorKeys, "anchor-key", "")
	flags.Var(&heads, "head", "")
	flags.Var(&headKeys, "head-key", "")
	flags.StringVar(&format, "o", "text", "")
	flags.BoolVar(&withKeys, "keys", false, "")

	positional, err := parse(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, usage)
		return exitOK
	case err == nil && format != "text" && format != "json":
		err = fmt.Errorf("-o is text or json, not %q", format)
	case err == nil && (len(positional) != 2 || !slices.Contains([]string{"chain", "release", "evidence", "disclosure"}, positional[0])):
		err = errors.New(`want "chain", "release", "evidence" or "disclosure", and one file or directory`)
	case err == nil && positional[0] == "evidence" && len(anchorKeys) > 0:
		err = errors.New("evidence takes no --anchor-key")
	case err == nil && (positional[0] == "release" || positional[0] == "disclosure") && (len(keys) == 0 || len(heads)+len(headKeys)+len(anchorKeys) > 0):
		err = errors.New(positional[0] + " takes --key, and no other flag")
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "berth-verify: %v\n\n%s", err, usage)
		return exitUsage
	}

	if check, alone := map[string]func(string, []string, io.Writer) error{"release": verifyRelease, "disclosure": verifyDisclosure}[positional[0]]; alone {
		if err := check(positional[1], keys, stdout); err != nil {
			_, _ = fmt.Fprintf(stderr, "berth-verify: %v\n", err)
			return exitBad
		}
		return exitOK
	}
	if positional[0] == "evidence" {
		return verifyEvidence(positional[1], given{keys: keys, heads: heads, headKeys: headKeys}, output{format: format, out: stdout, err: stderr})
	}
	report, err := verify(positional[1], stdin, given{keys: keys, heads: heads, headKeys: headKeys, anchorKeys: anchorKeys})
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "berth-verify: %v\n", err)
		return exitBad
	}
	if format == "json" {
		err = printJSON(stdout, report)
	} else {
		if err = printText(stdout, report, len(heads) > 0); withKeys && err == nil {
			err = printKeys(stdout, report.Keys)
		}
	}
	if err != nil || !report.OK() {
		return exitBad
	}
	return exitOK
}

// parse takes flags before, between and behind the other arguments.
func parse(flags *flag.FlagSet, args []string) (positional []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return positional, nil
		}
		positional = append(positional, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// given are the files that a chain is checked against.
type given struct{ keys, heads, headKeys, anchorKeys []string }

func verify(path string, stdin io.Reader, g given) (chain.Report, error) {
	var o chain.VerifyOptions
	var err error
	if o.Keys, err = readKeys(g.keys); err != nil {
		return chain.Report{}, err
	}
	if o.HeadKeys, err = readKeys(g.headKeys); err != nil {
		return chain.Report{}, err
	}
	if o.AnchorKeys, err = readKeys(g.anchorKeys); err != nil {
		return chain.Report{}, err
	}
	for _, file := range g.heads {
		kept, err := readHeads(file)
		if err != nil {
			return chain.Report{}, err
		}
		o.Heads = append(o.Heads, kept...)
	}
	o.Check = new(offer.History).Check
	if path == "-" {
		whole, err := io.ReadAll(stdin) // it is read twice
		if err != nil {
			return chain.Report{}, err
		}
		return chain.VerifyOf(o.Keys, bytes.NewReader(whole), o)
	}
	f, err := os.Open(path)
	if err != nil {
		return chain.Report{}, err
	}
	defer f.Close()
	return chain.VerifyOf(o.Keys, f, o)
}

func readKeys(paths []string) (map[string]ed25519.PublicKey, error) {
	keys := map[string]ed25519.PublicKey{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		texts := []string{string(text)}
		var trust trustFile
		if json.Unmarshal(text, &trust) == nil && len(trust.DispatchKeys) > 0 {
			texts = nil
			for _, key := range trust.DispatchKeys {
				texts = append(texts, key.PublicKey)
			}
		}
		for _, text := range texts {
			key, err := capsule.ParsePublicKey(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			keys[capsule.KeyID(key)] = key
		}
	}
	return keys, nil
}

// trustFile is what a runner's trust.json says of keys.
type trustFile struct {
	DispatchKeys []struct {
		PublicKey string `json:"public_key"`
	} `json:"dispatch_keys"`
}

// readHeads reads signed heads, one JSON value after the other. A record that
// anchors a head counts as that head, and other records are skipped, so that
// the other side's whole chain can be given.
func readHeads(path string) ([]chain.SignedHead, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var heads []chain.SignedHead
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var entry struct {
			chain.SignedHead
			Kind     string            `json:"kind"`
			Anchored *chain.SignedHead `json:"anchored"`
		}
		switch err := d.Decode(&entry); {
		case errors.Is(err, io.EOF) && len(heads) == 0:
			return nil, fmt.Errorf("%s: no heads in it", path)
		case errors.Is(err, io.EOF):
			return heads, nil
		case err != nil:
			return nil, fmt.Errorf("%s: not a signed head or a chain: %w", path, err)
		case entry.Anchored != nil:
			heads = append(heads, *entry.Anchored)
		case entry.Kind == "":
			heads = append(heads, entry.SignedHead)
		}
	}
}

func printJSON(w io.Writer, report chain.Report) error {
	text, err := json.MarshalIndent(struct {
		OK bool `json:"ok"`
		chain.Report
	}{report.OK(), report}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(visible.JSON(text), '\n'))
	return err
}

// printText prints one line for a good chain, and one more for each thing that
// a person should look at.
func printText(w io.Writer, report chain.Report, headsGiven bool) error {
	var out bytes.Buffer
	if !report.OK() {
		if report.FirstBad > 0 {
			_, _ = fmt.Fprintf(&out, "bad: record %s %s\n", thousands(report.FirstBad), visible.Line(report.Problem))
		} else {
			_, _ = fmt.Fprintf(&out, "bad: %s\n", visible.Line(report.Problem))
		}
		if f := report.Fork; f != nil {
			_, _ = fmt.Fprintf(&out, "fork at record %s: here %s, kept by %s at %s: %s; both have record %s\n", thousands(f.Seq), f.Here, visible.Line(f.By),
				f.KeptAt.Format(time.RFC3339), visible.Line(f.Kept), thousands(f.Common))
		}
		_, _ = fmt.Fprintf(&out, "%s records before it are good\n", thousands(report.Records))
		_, err := w.Write(out.Bytes())
		return err
	}
	_, _ = fmt.Fprintf(&out, "%s records", thousands(report.Records))
	if n := len(report.Decisions); n > 0 {
		_, _ = fmt.Fprintf(&out, " · records are missing, accepted by the customer %d times", n)
	}
	switch {
	case headsGiven && report.LastAgreed == report.Head.Seq:
		_, _ = fmt.Fprint(&out, " · head agrees with the vendor's anchor")
	case headsGiven && report.LastAgreed > 0:
		_, _ = fmt.Fprintf(&out, " · agrees with the vendor's anchor at record %s", thousands(report.LastAgreed))
	}
	_, _ = fmt.Fprintf(&out, " · %s effects without record\n", thousands(int64(len(report.Unfinished))))
	for _, intent := range report.Unfinished {
		_, _ = fmt.Fprintf(&out, "  record %d: %q by %q at %s has no outcome\n",
			intent.Seq, intent.What, intent.Actor, intent.Time.Format("2006-01-02 15:04:05Z07:00"))
	}
	for _, d := range report.Decisions {
		_, _ = fmt.Fprintf(&out, "  record %s: accepted by the customer: %s\n", thousands(d.Seq), visible.Line(d.Reason))
		for _, h := range d.Abandoned {
			_, _ = fmt.Fprintf(&out, "    given up: the records that led to record %s (%s)\n", thousands(h.Seq), visible.Line(h.Hash))
		}
		if d.Restored > 0 {
			_, _ = fmt.Fprintf(&out, "    restored from the control plane's copy: %s records\n", thousands(d.Restored))
		}
	}
	for _, d := range report.Disputes {
		_, _ = fmt.Fprintf(&out, "  record %s: at %s another process held the key of the machine: %s\n",
			thousands(d.Seq), d.Time.Format("2006-01-02 15:04:05Z07:00"), visible.Line(d.Detail))
	}
	if report.HeadsAbandoned > 0 {
		_, _ = fmt.Fprintf(&out, "  %s kept heads are of records that the customer gave up\n", thousands(int64(report.HeadsAbandoned)))
	}
	if !report.Signed {
		_, _ = fmt.Fprintln(&out, "signatures were not checked: give --key")
	}
	if headsGiven && !report.HeadsSigned {
		_, _ = fmt.Fprintln(&out, "signatures of the kept heads were not all checked: give --head-key")
	}
	if !headsGiven {
		_, _ = fmt.Fprintln(&out, "no kept head was given (--head): records cut off the end would not be seen")
	}
	_, err := w.Write(out.Bytes())
	return err
}

// printKeys says from when to when each key stands behind the chain.
func printKeys(w io.Writer, keys []chain.Vouched) error {
	var out bytes.Buffer
	for _, k := range keys {
		ended := ""
		if k.EndedBy > 0 {
			ended = fmt.Sprintf(", ended by record %s", thousands(k.EndedBy))
		}
		if k.As == "vendor" {
			ended = vendorKey(k)
		}
		_, _ = fmt.Fprintf(&out, "  key %s vouches as %s from %s to %s, records %s to %s%s\n", visible.Line(k.KeyID), visible.Line(strings.TrimSpace(k.As+" "+k.Holder)),
			k.From.UTC().Format("2006-01-02 15:04:05Z"), k.Until.UTC().Format("2006-01-02 15:04:05Z"), thousands(k.FirstSeq), thousands(k.LastSeq), ended)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// vendorKey says who pinned a key of the vendor's, and what became of it.
func vendorKey(k chain.Vouched) string {
	by := func(who string) string { return cmp.Or(visible.Line(who), "nobody that the runner knew") }
	text := fmt.Sprintf(", pinned by %s, releases taken or revoked by it: %s", by(k.PinnedBy), thousands(k.Records))
	switch {
	case k.EndedBy > 0 && k.ReplacedBy != "":
		text += fmt.Sprintf(", replaced by %s in record %s by %s", visible.Line(k.ReplacedBy), thousands(k.EndedBy), by(k.RemovedBy))
	case k.EndedBy > 0:
		text += fmt.Sprintf(", removed in record %s by %s", thousands(k.EndedBy), by(k.RemovedBy))
	}
	return text
}

// thousands writes 1284 as 1,284.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
