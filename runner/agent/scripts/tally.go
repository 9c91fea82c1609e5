package scripts

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

const (
	// recordEvery is how long runs are counted before they are recorded.
	recordEvery = time.Hour
	// recentRuns is how many runs are remembered by name: more than can be under
	// way at once, so that none is counted again after a crash.
	recentRuns = 256
	// maxSeen bounds how many digests are remembered.
	maxSeen = 10_000
	// listedRefusals is how many refusals of an hour are recorded one by one. Who can
	// send orders can have as many refused as they like, and a chain only grows.
	listedRefusals = 30
)

// Run is one run of an accepted script that came to its end.
type Run struct {
	// Name is that of the action, Digest that of the script.
	Name   string
	Digest string
	// Key names the run itself: it is counted once.
	Key string
	// At is the tick, or when it began for one that was ordered.
	At time.Time
	OK bool
}

func (r Run) outcome() string {
	if r.OK {
		return "ok"
	}
	return "failed"
}

// Tally is what is remembered of runs between two records of the chain.
type Tally struct {
	// Seen has the last outcome of each digest that ever ran.
	Seen map[string]string `json:"seen"`
	// Refused has the digests whose refusal is in the chain.
	Refused []string `json:"refused,omitempty"`
	// Recent are the keys of the last runs, oldest first.
	Recent []string `json:"recent,omitempty"`

	// Count, Failed and Digest are of the runs since the last record. Digest runs
	// over all of them in their order: sha256 over the digest before, a line feed
	// and "<time> <digest of the script> <outcome>".
	Count  int       `json:"count"`
	Failed int       `json:"failed"`
	Digest string    `json:"digest,omitempty"`
	Since  time.Time `json:"since,omitzero"`

	// Hour is when the hour began in which Listed refusals were recorded. Unlisted and
	// UnlistedDigest are of those that came after: sha256 over the digest before, a line
	// feed, what, result and detail, each on a line of its own.
	Hour           time.Time `json:"hour,omitzero"`
	Listed         int       `json:"listed,omitempty"`
	Unlisted       int       `json:"unlisted,omitempty"`
	UnlistedDigest string    `json:"unlisted_digest,omitempty"`
}

// Add counts a run and says what to record of it: the first run of a digest, and
// each change of its verdict. A run that was counted before changes nothing.
func (t Tally) Add(r Run, now time.Time) (Tally, []chain.Record) {
	if slices.Contains(t.Recent, r.Key) {
		return t, nil
	}
	t = t.clone()
	t.Recent = append(t.Recent, r.Key)
	if n := len(t.Recent); n > recentRuns {
		t.Recent = slices.Clone(t.Recent[n-recentRuns:])
	}
	var records []chain.Record
	before, ran := t.Seen[r.Digest]
	record := chain.Record{
		Actor: "runner", Kind: chain.Event, Job: r.Key, Result: r.outcome(),
		Detail: fmt.Sprintf("script %s, run of %s", r.Digest, r.At.UTC().Format(time.RFC3339)),
	}
	switch {
	case !ran:
		record.What = "first run of script " + r.Name
		records = append(records, record)
	case before != r.outcome():
		record.What = fmt.Sprintf("script %s: %s after %s", r.Name, r.outcome(), before)
		records = append(records, record)
	}
	if !ran && len(t.Seen) >= maxSeen {
		t.Seen = map[string]string{} // the next run of each is called its first, which is no harm
	}
	t.Seen[r.Digest] = r.outcome()
	if t.Count == 0 {
		t.Since = now.UTC()
	}
	t.Count++
	if !r.OK {
		t.Failed++
	}
	t.Digest = capsule.DigestBytes(fmt.Appendf(nil, "%s\n%s %s %s", t.Digest, r.At.UTC().Format(time.RFC3339), r.Digest, r.outcome()))
	return t, records
}

// Due says whether what was counted is to be recorded now: an hour after the first
// run and the first refusal, or at once when the agent ends.
func (t Tally) Due(now time.Time, ending bool) (Tally, []chain.Record) {
	t, records := t.dueRefusals(now, ending)
	if t.Count == 0 || !ending && now.Sub(t.Since) < recordEvery && !now.Before(t.Since) {
		return t, records
	}
	record := chain.Record{
		Actor: "runner", Kind: chain.Event, What: "runs of scripts", Result: fmt.Sprintf("%d ok, %d failed", t.Count-t.Failed, t.Failed),
		Detail: fmt.Sprintf("%d runs since %s, digest %s", t.Count, t.Since.Format(time.RFC3339), t.Digest),
	}
	t = t.clone()
	t.Count, t.Failed, t.Digest, t.Since = 0, 0, "", time.Time{}
	return t, append(records, record)
}

// Refusal says what to record of something that was refused: itself, or later how
// many there were, when there are too many in an hour.
func (t Tally) Refusal(r chain.Record, now time.Time) (Tally, []chain.Record) {
	t, records := t.dueRefusals(now, false)
	if t.Listed == 0 && t.Unlisted == 0 {
		t.Hour = now.UTC()
	}
	if t.Listed < listedRefusals {
		t.Listed++
		return t, append(records, r)
	}
	t.Unlisted++
	t.UnlistedDigest = capsule.DigestBytes(fmt.Appendf(nil, "%s\n%s\n%s\n%s", t.UnlistedDigest, r.What, r.Result, r.Detail))
	return t, records
}

// dueRefusals ends an hour of refusals. When the agent ends, the hour goes on with
// the next one, so that ending it often lists no more of them.
func (t Tally) dueRefusals(now time.Time, ending bool) (Tally, []chain.Record) {
	over := now.Sub(t.Hour) >= recordEvery || now.Before(t.Hour)
	var records []chain.Record
	if t.Unlisted > 0 && (over || ending) {
		records = append(records, chain.Record{
			Actor: "runner", Kind: chain.Event, What: "refusals that are not listed", Result: "refused",
			Detail: fmt.Sprintf("%d since %s, after %d that are listed, digest %s", t.Unlisted, t.Hour.Format(time.RFC3339), t.Listed, t.UnlistedDigest),
		})
		t.Unlisted, t.UnlistedDigest = 0, ""
	}
	if over {
		t.Hour, t.Listed = time.Time{}, 0
	}
	return t, records
}

// Refuse says what to record of a script that was not run, because it was not
// accepted: once for each digest.
func (t Tally) Refuse(name, digest, by string, now time.Time) (Tally, []chain.Record) {
	if slices.Contains(t.Refused, digest) {
		return t, nil
	}
	t = t.clone()
	t.Refused = append(t.Refused, digest)
	if n := len(t.Refused); n > recentRuns {
		t.Refused = slices.Clone(t.Refused[n-recentRuns:])
	}
	return t.Refusal(chain.Record{
		Actor: "runner", Kind: chain.Event, What: "script " + name + " was not run", Result: "refused",
		Detail: fmt.Sprintf("%s carries script %s, which was not accepted", by, digest),
	}, now)
}

// clone keeps the maps and lists of one tally from those of the next.
func (t Tally) clone() Tally {
	seen := make(map[string]string, len(t.Seen)+1)
	for k, v := range t.Seen {
		seen[k] = v
	}
	t.Seen, t.Refused, t.Recent = seen, slices.Clone(t.Refused), slices.Clone(t.Recent)
	return t
}
