package remedy

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

const (
	// maxEnded is how many ended episodes wait to be told; the oldest go first.
	maxEnded = 200
	// forgetAfter is how long a check without a remedy is remembered: settings that leave
	// one out for a moment forget no count.
	forgetAfter = 24 * time.Hour
)

// Attempt is one start of a remedy, or of its revert.
type Attempt struct {
	RunID   string    `json:"run_id"`
	Action  string    `json:"action"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"` // zero while it runs
	OK      bool      `json:"ok,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Episode is all that was done about a check until it stayed healthy.
type Episode struct {
	ID         string                   `json:"id"`
	Check      string                   `json:"check"`
	Action     string                   `json:"action"`
	ResourceID string                   `json:"resource_id,omitempty"`
	Began      time.Time                `json:"began"`
	Changed    time.Time                `json:"changed"`
	Ended      time.Time                `json:"ended,omitzero"`
	State      jobspec.RemediationState `json:"state"`
	Why        string                   `json:"why,omitempty"`
	Attempts   []Attempt                `json:"attempts,omitempty"`
	Of         int                      `json:"of"`
	Revert     *Attempt                 `json:"revert,omitempty"`
	// Seq counts the changes, Told is the last one that the control plane has.
	Seq  int64 `json:"seq"`
	Told int64 `json:"told"`
}

// Running says whether an attempt or the revert is under way.
func (e *Episode) Running() bool {
	if e.Revert != nil {
		return e.Revert.Ended.IsZero()
	}
	return len(e.Attempts) > 0 && e.Attempts[len(e.Attempts)-1].Ended.IsZero()
}

// Report is the episode as the control plane is told of it.
func (e *Episode) Report() jobspec.Remediation {
	return jobspec.Remediation{
		Check: e.Check, Action: e.Action, ResourceID: e.ResourceID, Seq: e.Seq, State: e.State, Why: e.Why,
		Attempts: len(e.Attempts), Of: e.Of, Reverted: e.Revert != nil && e.Revert.OK, BeganAt: e.Began, ChangedAt: e.Changed, EndedAt: e.Ended,
	}
}

// Watched is a check as the ledger knows it.
type Watched struct {
	Verdict verdict.Verdict   `json:"verdict"`
	Since   time.Time         `json:"since,omitzero"`
	Recent  []verdict.Outcome `json:"recent,omitempty"` // newest first
	Episode *Episode          `json:"episode,omitempty"`
	// Unwatched is since when it has no remedy, zero while it has.
	Unwatched time.Time `json:"unwatched,omitzero"`
}

type document struct {
	Checks map[string]Watched `json:"checks"`
	// Starts are when attempts and reverts began, of the last day, oldest first.
	Starts []time.Time `json:"starts,omitempty"`
	// Ended are episodes that ended and were not told yet.
	Ended []Episode `json:"ended,omitempty"`
}

// Ledger is what the runner remembers of checks that have a remedy. What a method
// changed is on disk when it returns; when it returns an error nothing was changed. Safe
// for concurrent use.
type Ledger struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	doc     document
	changed chan struct{}
}

// Open reads the ledger at path; an empty one when there is no file. Next to the error of
// a damaged one it returns a ledger whose budget is spent: how much was used of it is not
// known.
func Open(path string, now func() time.Time) (*Ledger, error) {
	l := &Ledger{path: path, now: now, changed: make(chan struct{})}
	_, err := datadir.ReadJSON(path, &l.doc)
	if err != nil {
		l.doc = document{}
		for range PerDay {
			l.doc.Starts = append(l.doc.Starts, now().UTC())
		}
	}
	if l.doc.Checks == nil {
		l.doc.Checks = map[string]Watched{}
	}
	return l, err
}

// Changed is closed when there is something to decide or to tell.
func (l *Ledger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Starts are the starts of the last day, oldest first.
func (l *Ledger) Starts() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.doc.Starts)
}

// Watch says which checks have a remedy: of others no outcomes are kept, and what is
// known of them is forgotten after a day.
func (l *Ledger) Watch(checks []string) error {
	return l.edit(func(d *document) bool {
		changed := false
		for _, name := range checks {
			w, known := d.Checks[name]
			if !known {
				w.Verdict = verdict.Unknown
			}
			if !known || !w.Unwatched.IsZero() {
				w.Unwatched = time.Time{}
				d.Checks[name], changed = w, true
			}
		}
		for name, w := range d.Checks {
			if slices.Contains(checks, name) {
				continue
			}
			switch {
			case w.Unwatched.IsZero():
				w.Unwatched = l.now().UTC()
				d.Checks[name] = w
			case l.now().Sub(w.Unwatched) >= forgetAfter:
				if w.Episode != nil {
					l.end(d, *w.Episode, jobspec.RemediationDropped)
				}
				delete(d.Checks, name)
			default:
				continue
			}
			changed = true
		}
		return changed
	})
}

// Add keeps the outcome of a check that is watched. The same one again changes nothing.
func (l *Ledger) Add(check string, o verdict.Outcome) error {
	return l.edit(func(d *document) bool {
		w, known := d.Checks[check]
		same := func(other verdict.Outcome) bool { return other.RunID == o.RunID }
		if !known || !w.Unwatched.IsZero() || slices.ContainsFunc(w.Recent, same) {
			return false
		}
		w.Recent = append(slices.Clone(w.Recent), o)
		slices.SortStableFunc(w.Recent, func(a, b verdict.Outcome) int { return b.At.Compare(a.At) })
		w.Recent = w.Recent[:min(len(w.Recent), verdict.MaxRecent)]
		d.Checks[check] = w
		return true
	})
}

// Judge judges a check by its outcomes and returns what is known of it.
func (l *Ledger) Judge(check string, rules verdict.Rules) (Watched, error) {
	now := l.now().UTC()
	err := l.edit(func(d *document) bool {
		w, known := d.Checks[check]
		if !known {
			return false
		}
		v := verdict.Evaluate(w.Verdict, w.Recent, rules, now)
		if v == w.Verdict && !w.Since.IsZero() {
			return false
		}
		w.Verdict, w.Since = v, now
		d.Checks[check] = w
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.doc.Checks[check]
	if w.Episode != nil {
		e := w.Episode.clone()
		w.Episode = &e
	}
	return w, err
}

// Episode is what is being done about a check.
func (l *Ledger) Episode(check string) (e Episode, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.doc.Checks[check]
	if w.Episode == nil {
		return Episode{}, false
	}
	return w.Episode.clone(), true
}

func (e Episode) clone() Episode {
	e.Attempts = slices.Clone(e.Attempts)
	if e.Revert != nil {
		revert := *e.Revert
		e.Revert = &revert
	}
	return e
}

// Opening is what a new episode is about.
type Opening struct {
	Action, ResourceID string
	Of                 int
}

// Set changes the episode of a check, and begins one when there is none.
func (l *Ledger) Set(check string, about Opening, state jobspec.RemediationState, why string) error {
	return l.edit(func(d *document) bool { return l.set(d, check, about, state, why) })
}

func (l *Ledger) set(d *document, check string, about Opening, state jobspec.RemediationState, why string) bool {
	now := l.now().UTC()
	w, known := d.Checks[check]
	if !known {
		return false
	}
	e := Episode{ID: id.New(id.Remediation), Check: check, ResourceID: about.ResourceID, Began: now}
	if w.Episode != nil {
		e = w.Episode.clone()
	}
	if e.Seq > 0 && e.State == state && e.Why == why && e.Of == about.Of && e.Action == about.Action {
		return false
	}
	e.State, e.Why, e.Of, e.Action, e.Changed = state, why, about.Of, about.Action, now
	e.Seq++
	w.Episode = &e
	d.Checks[check] = w
	return true
}

// Begin counts an attempt, or the revert, before it starts.
func (l *Ledger) Begin(check string, about Opening, a Attempt, reverts bool) error {
	return l.edit(func(d *document) bool {
		l.set(d, check, about, jobspec.RemediationRunning, "")
		w, known := d.Checks[check]
		if !known {
			return false
		}
		e := w.Episode.clone()
		if reverts {
			e.Revert = &a
		} else {
			e.Attempts = append(e.Attempts, a)
		}
		e.Seq++
		e.Changed = l.now().UTC()
		w.Episode = &e
		d.Checks[check] = w
		d.Starts = slices.DeleteFunc(append(slices.Clone(d.Starts), a.Started.UTC()), func(at time.Time) bool {
			return a.Started.Sub(at) >= 24*time.Hour
		})
		slices.SortFunc(d.Starts, time.Time.Compare)
		return true
	})
}

// Ended says how the run of an attempt ended. Of one that is not known, or that ended
// before, nothing changes.
func (l *Ledger) Ended(runID string, at time.Time, ok bool, why string) error {
	return l.edit(func(d *document) bool {
		for name, w := range d.Checks {
			if w.Episode == nil {
				continue
			}
			e := w.Episode.clone()
			for _, a := range e.all() {
				if a.RunID != runID || !a.Ended.IsZero() {
					continue
				}
				a.Ended, a.OK, a.Error = at.UTC(), ok, why
				e.Seq++
				e.Changed = l.now().UTC()
				w.Episode = &e
				d.Checks[name] = w
				return true
			}
		}
		return false
	})
}

func (e *Episode) all() (list []*Attempt) {
	for i := range e.Attempts {
		list = append(list, &e.Attempts[i])
	}
	if e.Revert != nil {
		list = append(list, e.Revert)
	}
	return list
}

// Open are the runs that were counted and whose end is not known.
func (l *Ledger) Open() (list []Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.doc.Checks {
		if w.Episode == nil {
			continue
		}
		for _, a := range w.Episode.all() {
			if a.Ended.IsZero() {
				list = append(list, *a)
			}
		}
	}
	return list
}

// End ends the episode of a check: the next one counts from zero.
func (l *Ledger) End(check string) error {
	return l.edit(func(d *document) bool {
		w := d.Checks[check]
		if w.Episode == nil {
			return false
		}
		state := w.Episode.State
		if len(w.Episode.Attempts) == 0 {
			state = jobspec.RemediationRecovered
		}
		l.end(d, *w.Episode, state)
		w.Episode = nil
		d.Checks[check] = w
		return true
	})
}

// end keeps an episode until it is told.
func (l *Ledger) end(d *document, e Episode, state jobspec.RemediationState) {
	if state == jobspec.RemediationDropped && e.State == jobspec.RemediationNeedsAttention {
		state = e.State // nobody helped
	}
	if state != e.State {
		e.Why = ""
	}
	e.State, e.Ended = state, l.now().UTC()
	e.Changed = e.Ended
	e.Seq++
	d.Ended = append(slices.Clone(d.Ended), e)
	d.Ended = d.Ended[max(0, len(d.Ended)-maxEnded):]
}

// Untold are the episodes that changed since they were told, oldest first.
func (l *Ledger) Untold() (list []Episode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list = slices.Clone(l.doc.Ended)
	for _, w := range l.doc.Checks {
		if w.Episode != nil && w.Episode.Seq > w.Episode.Told {
			list = append(list, w.Episode.clone())
		}
	}
	slices.SortFunc(list, func(a, b Episode) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Tell notes that the control plane has an episode as it was at seq.
func (l *Ledger) Tell(episode string, seq int64) error {
	return l.edit(func(d *document) bool {
		before := len(d.Ended)
		d.Ended = slices.DeleteFunc(slices.Clone(d.Ended), func(e Episode) bool { return e.ID == episode && e.Seq <= seq })
		if len(d.Ended) < before {
			return true
		}
		for name, w := range d.Checks {
			if w.Episode != nil && w.Episode.ID == episode && w.Episode.Told < seq {
				e := w.Episode.clone()
				e.Told = seq
				w.Episode = &e
				d.Checks[name] = w
				return true
			}
		}
		return false
	})
}

// edit changes a copy, which counts once it is on disk. do must not change what the copy
// shares with the original: maps are cloned here, the rest is its own affair.
func (l *Ledger) edit(do func(d *document) (changed bool)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.doc
	next.Checks = make(map[string]Watched, len(l.doc.Checks))
	for name, w := range l.doc.Checks {
		next.Checks[name] = w
	}
	if !do(&next) {
		return nil
	}
	if err := datadir.WriteJSON(l.path, next); err != nil {
		return err
	}
	l.doc = next
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}
