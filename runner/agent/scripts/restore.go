package scripts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Restored is the set that another machine's chain tells of.
type Restored struct {
	doc document
	// Nothing says why the set is empty although scripts were accepted, "" when it is
	// as the chain says. Then a deploy asks for all of them again.
	Nothing string
}

// Scripts are those that are accepted.
func (r Restored) Scripts() []Accepted { return r.doc.Scripts }

// FromChain rebuilds the set from the records of the machine before, all of which
// are verified to be its own. Where the records leave open what was accepted last,
// nothing is: a script too few is asked for once more, and one too many would run.
func FromChain(records []chain.Record) Restored {
	r := Restored{}
	unknown := func(format string, args ...any) {
		r = Restored{doc: document{Version: r.doc.Version}, Nothing: fmt.Sprintf(format, args...)}
	}
	begun := map[int64]bool{} // intents of acceptances without outcome
	for _, rec := range records {
		switch {
		case rec.Accepted != nil && len(rec.Accepted.Abandoned) > 0:
			unknown("record %d gives records up, which may have said what is accepted", rec.Seq)
		case rec.Kind == chain.Intent && rec.Scripts != nil:
			begun[rec.Seq] = true
		case rec.Kind == chain.Outcome && begun[rec.Intent]:
			delete(begun, rec.Intent)
			switch outcome := jobspec.Outcome(rec.Result); {
			case outcome == jobspec.OutcomeSucceeded && rec.Scripts != nil && rec.Scripts.Whole():
				r = Restored{doc: r.doc.after(rec)}
			case outcome == jobspec.OutcomeSucceeded:
				unknown("record %d does not list the scripts that were accepted", rec.Seq)
			case !slices.Contains(unchanged, outcome):
				unknown("record %d leaves open which scripts were accepted", rec.Seq)
			}
		}
	}
	if len(begun) > 0 {
		unknown("the machine before was accepting scripts, and its chain does not say how that ended")
	}
	return r
}

// unchanged are the outcomes of an acceptance that replaced nothing.
var unchanged = []jobspec.Outcome{
	jobspec.OutcomeFailed, jobspec.OutcomeRefused, jobspec.OutcomeStale, jobspec.OutcomeCancelled, jobspec.OutcomeNotStarted,
}

// after is the document that the outcome of an acceptance tells of. Scripts that
// were accepted before keep where they come from.
func (d document) after(rec chain.Record) document {
	next := map[string]Accepted{}
	after := document{Version: max(rec.Scripts.Version, d.Version+1), By: rec.Job}
	for _, s := range rec.Scripts.List {
		next[s.Digest] = Accepted{
			Digest: s.Digest, ReleaseID: rec.Scripts.ReleaseID, Release: rec.Scripts.Release, Since: rec.Time.UTC(), JobID: rec.Job, NoText: true,
			Script: jobspec.Script{
				Action: jobspec.Action{Name: s.Name, ReadOnly: s.ReadOnly, BreakGlassRole: s.BreakGlassRole},
				Inputs: s.Inputs, Cron: s.Cron, Role: s.Role, TimeoutSeconds: s.TimeoutSeconds, HealthCheck: s.HealthCheck, Unattended: s.Unattended, WhenRoleIsOff: s.WhenRoleIsOff,
			},
		}
		if s.Kept {
			after.Kept = append(after.Kept, s.Digest)
		}
	}
	for _, was := range d.Scripts {
		if _, still := next[was.Digest]; still {
			next[was.Digest] = was
		}
	}
	after.Scripts = sorted(next)
	return after
}

// Restore stores the set at path, for a machine that has none yet. One that is there
// stays.
func Restore(path string, r Restored) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return datadir.WriteJSON(path, r.doc)
}
