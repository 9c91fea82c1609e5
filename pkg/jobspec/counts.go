package jobspec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Counts says how much a plan does.
type Counts struct {
	// NoChange: there is nothing to apply.
	NoChange bool `json:"no_change"`
	Create   int  `json:"create"`
	Update   int  `json:"update"`
	Replace  int  `json:"replace"`
	Delete   int  `json:"delete"`
	// Run counts scripts, and hooks of charts.
	Run int `json:"run"`
	// Outputs counts the outputs that change.
	Outputs int `json:"outputs"`
	// Other counts every other action by its name: forget, move, upgrade, …
	Other map[string]int `json:"other,omitempty"`
}

// actionKeep is shown in a plan and does nothing.
const actionKeep = "keep"

// Counts counts what the plan lists. What it says of itself counts only where
// it says more: nothing can be listed and not counted.
func (s PlanSummary) Counts() Counts {
	c := Counts{NoChange: s.NoChange, Outputs: len(s.Outputs)}
	for _, o := range s.Objects {
		switch o.Action {
		case actionKeep:
		case "create":
			c.Create++
		case "update":
			c.Update++
		case "replace":
			c.Replace++
		case "delete":
			c.Delete++
		case "run":
			c.Run++
		default:
			if c.Other == nil {
				c.Other = map[string]int{}
			}
			c.Other[o.Action]++
		}
	}
	c.Create, c.Update = max(c.Create, s.Create), max(c.Update, s.Update)
	c.Replace, c.Delete = max(c.Replace, s.Replace), max(c.Delete, s.Delete)
	return c
}

// String says it in words: "1 to create, 2 to update, 1 output changes".
func (c Counts) String() string { return c.words(fmt.Sprintf("%d to run", c.Run)) }

// OfScripts says it in words for a change that runs scripts: "runs 2 scripts".
func (c Counts) OfScripts() string { return c.words("runs " + plural(c.Run, "script")) }

// words names every count that is not zero. A plan that does something that it
// does not list must not look like one that does less.
func (c Counts) words(run string) string {
	var parts []string
	for _, p := range []struct {
		n     int
		words string
	}{
		{c.Create, fmt.Sprintf("%d to create", c.Create)}, {c.Update, fmt.Sprintf("%d to update", c.Update)},
		{c.Replace, fmt.Sprintf("%d to replace", c.Replace)}, {c.Delete, fmt.Sprintf("%d to delete", c.Delete)}, {c.Run, run},
	} {
		if p.n > 0 {
			parts = append(parts, p.words)
		}
	}
	for _, action := range slices.Sorted(maps.Keys(c.Other)) {
		parts = append(parts, fmt.Sprintf("%d to %s", c.Other[action], action))
	}
	switch outputs := len(parts) == 0; {
	case c.Outputs == 1 && outputs:
		return "only 1 output changes"
	case c.Outputs > 0 && outputs:
		return fmt.Sprintf("only %d outputs change", c.Outputs)
	case c.Outputs == 1:
		parts = append(parts, "1 output changes")
	case c.Outputs > 0:
		parts = append(parts, fmt.Sprintf("%d outputs change", c.Outputs))
	case outputs && c.NoChange:
		return "no change"
	case outputs:
		return "changes that the plan does not list"
	}
	return strings.Join(parts, ", ")
}

// namedScripts is how many scripts a title names; the plan has all of them.
const namedScripts = 4

// Title says what the plan does, in one line: counts of what it lists, and the
// names of scripts, quoted. No text of the plan can change what the counts say.
func (s PlanSummary) Title() string {
	var scripts []string
	for _, o := range s.Objects {
		if o.Action == "run" && slices.ContainsFunc(o.Fields, func(f FieldChange) bool { return f.Path == ScriptField }) {
			scripts = append(scripts, strconv.Quote(o.Address))
		}
	}
	c := s.Counts()
	missing := ""
	if s.NotShownBytes > 0 {
		missing = fmt.Sprintf(" (%d bytes of the plan are not shown)", s.NotShownBytes)
	}
	if len(scripts) == 0 || len(scripts) != c.Run {
		return c.String() + missing
	}
	more := ""
	if n := len(scripts) - namedScripts; n > 0 {
		scripts, more = scripts[:namedScripts], fmt.Sprintf(" and %d more", n)
	}
	return c.words("runs "+plural(c.Run, "script")+": "+strings.Join(scripts, ", ")+more) + missing
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
