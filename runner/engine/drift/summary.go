package drift

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is about all objects of a release.
type Report struct {
	Findings []Finding `json:"findings,omitempty"`
}

// Accept is Finding.Accept for all.
func (r Report) Accept(rules []Rule, now time.Time) Report {
	out := Report{Findings: make([]Finding, len(r.Findings))}
	for i, f := range r.Findings {
		out.Findings[i] = f.Accept(rules, now)
	}
	return out
}

// Digest identifies the drift: it is the same for as long as the same managers
// differ in the same fields, whatever the values, which may change each minute.
// "" without drift.
func (r Report) Digest() string {
	var lines []string
	for _, f := range r.Findings {
		for _, d := range f.Differences {
			if d.Drifts() {
				lines = append(lines, fmt.Sprintf("%q %q %q %q %q", f.Address(), d.Path, d.What, d.Class, d.Manager))
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// maxShown is how much of a value a line shows, in bytes.
const maxShown = 60

// Lines tell people what alerts: a line for each object, the worst first, then
// how many objects are not shown, and what does not alert. limit is how many
// objects are shown.
func (r Report) Lines(limit int) []string {
	var drifted []Finding
	accepted, quiet := 0, map[Class]int{}
	for _, f := range r.Findings {
		if f.Worst() != "" {
			drifted = append(drifted, f)
		}
		for _, d := range f.Differences {
			switch {
			case d.Accepted != nil:
				accepted++
			case !d.Alerts():
				quiet[d.Class]++
			}
		}
	}
	slices.SortStableFunc(drifted, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(classes, a.Worst()), slices.Index(classes, b.Worst())),
			strings.Compare(a.Address(), b.Address()))
	})
	var lines []string
	for _, f := range drifted[:min(limit, len(drifted))] {
		lines = append(lines, f.Line())
	}
	if more := len(drifted) - limit; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more objects", more))
	}
	var rest []string
	for _, part := range []struct {
		n    int
		what string
	}{{accepted, "accepted by a rule"}, {quiet[Controller], "of other controllers"}, {quiet[Defaulted], "defaults"}} {
		if part.n > 0 {
			rest = append(rest, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(rest) > 0 {
		lines = append(lines, "differences that do not alert: "+strings.Join(rest, ", "))
	}
	return lines
}

// said is how people call a class.
var said = map[Class]string{Real: "drift", Unknown: "not explained", HumanEdit: "edited by hand"}

// Line is about one difference of an object that alerts, and counts the others:
// one that is about all of it, else the first of the worst. "" when nothing does.
func (f Finding) Line() string {
	worst, n := f.Worst(), 0
	var first Difference
	for _, d := range f.Differences {
		if !d.Alerts() {
			continue
		}
		n++
		if first.Class == "" && d.Class == worst || d.What == Recreated {
			first = d
		}
	}
	if n == 0 {
		return ""
	}
	line := fmt.Sprintf("%s: %s: %s", f.Address(), said[worst], first.text())
	if n > 1 {
		line += fmt.Sprintf("; %d more", n-1)
	}
	return line
}

func (d Difference) text() string {
	var b strings.Builder
	switch {
	case d.Path == WholeObject:
		b.WriteString(d.Why)
	case d.What == Removed:
		fmt.Fprintf(&b, "%s is missing, the release wants %s", d.Path, cut(d.Want, maxShown))
	case d.Want == "":
		fmt.Fprintf(&b, "%s is %s, the release does not set it", d.Path, cut(d.Have, maxShown))
	default:
		fmt.Fprintf(&b, "%s is %s, the release wants %s", d.Path, cut(d.Have, maxShown), cut(d.Want, maxShown))
	}
	var who []string
	if d.Manager != "" {
		who = append(who, "by "+d.Manager)
	}
	if d.Time != nil {
		who = append(who, d.Time.Format(time.RFC3339))
	}
	if d.Lapsed != nil {
		who = append(who, fmt.Sprintf("accepted by %s until %s", cut(d.Lapsed.By, maxShown), d.Lapsed.Until.Format(time.DateOnly)))
	}
	if len(who) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(who, ", "))
	}
	return b.String()
}
