package consent

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"
	_ "time/tzdata" // zones do not depend on the machine

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/capsule"
)

// Rules are standing rules: what the customer's side agrees to without being asked each
// time. The file is signed as it is written.
type Rules struct {
	// Version rises with each file. One that is lower than one that was seen is refused.
	Version int64  `toml:"version"`
	Install string `toml:"install"`
	// Expires ends all rules of the file.
	Expires time.Time `toml:"expires"`
	// TimeZone is where its clocks are, by the name in the zone database: Europe/Berlin.
	TimeZone string   `toml:"time_zone"`
	Freezes  []Freeze `toml:"freeze"`
	Rules    []Rule   `toml:"rule"`

	zone *time.Location
}

// Freeze is a time in which no rule agrees to anything.
type Freeze struct {
	// From and Until are days (2026-12-20, both included) or times (2026-12-20T18:00) of
	// the zone.
	From   string `toml:"from"`
	Until  string `toml:"until"`
	Reason string `toml:"reason"`

	from, until time.Time
}

// Rule agrees to a change that passes all of its conditions.
type Rule struct {
	Name string `toml:"name"`
	// Changes are the kinds of change that it is for, at least one.
	Changes []string `toml:"changes"`
	// Components are names of components or actions, or patterns such as api-*; none is
	// all.
	Components []string  `toml:"components"`
	Expires    time.Time `toml:"expires"`

	// NoDeletes excludes replacements, too: they delete.
	NoDeletes   bool `toml:"no_deletes"`
	NoReplaces  bool `toml:"no_replaces"`
	CreatesOnly bool `toml:"creates_only"`
	// ImagesOnly: nothing changes but the images of containers.
	ImagesOnly bool `toml:"images_only"`
	// PatchReleases: a chart, or else all that changes, goes from x.y.z to a higher x.y.z'.
	PatchReleases bool `toml:"patch_releases"`
	// GuardrailAsks lets the rule answer what a guardrail asks, too.
	GuardrailAsks bool `toml:"guardrail_asks"`

	// MaxPerDay counts in any 24 hours, MaxPerWeek in any 168; 0 is without limit.
	MaxPerDay  int      `toml:"max_per_day"`
	MaxPerWeek int      `toml:"max_per_week"`
	Windows    []Window `toml:"window"`
}

// Window is a time of the week, on the zone's clocks.
type Window struct {
	Days  []string `toml:"days"` // mon, tue, …; none is all
	From  string   `toml:"from"` // 09:00
	Until string   `toml:"until"`

	from, until int // minutes since midnight
}

// ChangeKinds are the kinds of change that rules know: those of effects, and tick for the
// scheduled runs of an accepted script.
var ChangeKinds = []string{"deploy", "teardown", "script", "ad_hoc", "accept", "forget", "secret_sync", "runner_update", Tick}

// Tick is the kind of change that a scheduled run is.
const Tick = "tick"

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

const (
	maxRules = 200
	maxCount = 1_000_000
)

var ruleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$`)

// ParseRules reads a file of rules. Everything in it is known and makes sense: a limit
// that was misspelled would be none.
func ParseRules(text []byte) (*Rules, error) {
	if len(text) > maxPayload {
		return nil, fmt.Errorf("standing rules: more than %d bytes", maxPayload)
	}
	var r Rules
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&r); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) {
			return nil, fmt.Errorf("standing rules have keys that nobody knows:\n%s", strict.String())
		}
		return nil, fmt.Errorf("standing rules: %w", err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("standing rules: %w", err)
	}
	return &r, nil
}

func (r *Rules) check() (err error) {
	switch {
	case r.Version < 1 || r.Version > 1<<53:
		return errors.New("version is not 1 or higher")
	case r.Install == "":
		return errors.New("install is missing: the id of the install that they are for")
	case r.Expires.IsZero():
		return errors.New("expires is missing: a time such as 2027-01-01T00:00:00Z")
	case r.TimeZone == "" || r.TimeZone == "Local":
		return errors.New("time_zone is missing: a name such as Europe/Berlin, or UTC")
	case len(r.Rules) > maxRules || len(r.Freezes) > maxRules:
		return fmt.Errorf("more than %d rules or freezes", maxRules)
	}
	if r.zone, err = time.LoadLocation(r.TimeZone); err != nil {
		return fmt.Errorf("time_zone: %w", err)
	}
	for i := range r.Freezes {
		if err := r.Freezes[i].read(r.zone); err != nil {
			return fmt.Errorf("freeze %d: %w", i+1, err)
		}
	}
	names := map[string]bool{}
	for i := range r.Rules {
		rule := &r.Rules[i]
		if !ruleName.MatchString(rule.Name) || names[rule.Name] {
			return fmt.Errorf("rule %d: name %.40q is no name, or is there twice", i+1, rule.Name)
		}
		names[rule.Name] = true
		if err := rule.check(); err != nil {
			return fmt.Errorf("rule %q: %w", rule.Name, err)
		}
	}
	return nil
}

func (f *Freeze) read(zone *time.Location) (err error) {
	if f.from, err = localTime(f.From, zone, 0); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if f.until, err = localTime(f.Until, zone, 1); err != nil {
		return fmt.Errorf("until: %w", err)
	}
	if !f.until.After(f.from) {
		return errors.New("it ends before it begins")
	}
	return nil
}

// localTime is a time of the zone, or the midnight so many days after the one that begins
// a day.
func localTime(text string, zone *time.Location, after int) (time.Time, error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return time.Date(day.Year(), day.Month(), day.Day()+after, 0, 0, 0, 0, zone), nil
	}
	at, err := time.ParseInLocation("2006-01-02T15:04", text, zone)
	if err != nil {
		return at, fmt.Errorf("%.40q is no day (2026-12-20) and no time (2026-12-20T18:00)", text)
	}
	return at, nil
}

func (r *Rule) check() error {
	if len(r.Changes) == 0 {
		return errors.New("changes is missing: the kinds of change that it is for")
	}
	for _, kind := range r.Changes {
		if !slices.Contains(ChangeKinds, kind) {
			return fmt.Errorf("changes: %.40q is none of %v", kind, ChangeKinds)
		}
	}
	for _, pattern := range r.Components {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("components: %.40q is no name or pattern", pattern)
		}
	}
	if r.MaxPerDay < 0 || r.MaxPerWeek < 0 || r.MaxPerDay > maxCount || r.MaxPerWeek > maxCount {
		return errors.New("a limit is below 0, or makes no sense")
	}
	for i := range r.Windows {
		if err := r.Windows[i].read(); err != nil {
			return fmt.Errorf("window %d: %w", i+1, err)
		}
	}
	return nil
}

func (w *Window) read() (err error) {
	for _, day := range w.Days {
		if !slices.Contains(days, day) {
			return fmt.Errorf("days: %.20q is none of mon, tue, wed, thu, fri, sat, sun", day)
		}
	}
	if w.from, err = clock(w.From); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if w.until, err = clock(w.Until); err != nil {
		return fmt.Errorf("until: %w", err)
	}
	if w.until <= w.from {
		return errors.New("it ends before it begins; one over midnight is two: until 24:00, and from 00:00")
	}
	return nil
}

func clock(text string) (int, error) {
	if text == "24:00" {
		return 24 * 60, nil
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%.20q is no time of the day (09:00)", text)
	}
	return at.Hour()*60 + at.Minute(), nil
}

// OpenRules verifies signed rules and reads them: as many holders have signed as have to
// agree to a change.
func (p Panel) OpenRules(install string, env capsule.Envelope) (*Rules, error) {
	rules, still, err := p.readRules(install, env)
	if err == nil && still > 0 {
		err = fmt.Errorf("%w: %d more holders have to sign the standing rules", ErrSignature, still)
	}
	if err != nil {
		return nil, err
	}
	return rules, nil
}

// readRules is OpenRules that says how many more have to sign.
func (p Panel) readRules(install string, env capsule.Envelope) (*Rules, int, error) {
	ids, payload, err := Signers(p.Keys(), ForRules, env)
	if err != nil {
		return nil, 0, fmt.Errorf("standing rules: %w", err)
	}
	rules, err := ParseRules(payload)
	if err != nil {
		return nil, 0, err
	}
	if rules.Install != install {
		return nil, 0, fmt.Errorf("standing rules: they are for install %.60q", rules.Install)
	}
	var by []string
	for _, id := range ids {
		if name, known := p.Holder(id); known && !slices.Contains(by, name) {
			by = append(by, name)
		}
	}
	return rules, max(0, p.Need-len(by)), nil
}

// StillToSign is how many more holders have to sign a file of rules.
func (p Panel) StillToSign(install string, env capsule.Envelope) (int, error) {
	_, still, err := p.readRules(install, env)
	return still, err
}
