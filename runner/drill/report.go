package drill

import (
	"fmt"
	"strings"
)

// Markdown is the report for a security review.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Drill of a runner\n\n")
	fmt.Fprintf(&b, "%d attacks, %d refused, %d succeeded, %d unclear.\n\n", len(r.Outcomes), r.Count(Refused), r.Count(Succeeded), r.Count(Unclear))
	fmt.Fprintf(&b, "| | |\n|---|---|\n| when | %s, %.0f s |\n| attacked | berth-runner %s, `%s` |\n| engines | %s |\n\n", r.Began.Format("2006-01-02 15:04 MST"), r.Seconds, r.Version, r.Digest, r.engines())
	b.WriteString("The runner was started as a process of its own in scratch installs, against a control plane of the drill's that holds their dispatch keys.\n" +
		"Whether an attack had its effect is what the drill saw in the place that the table names; the rule is what the runner said about its refusal.\n\n")
	for _, who := range []Adversary{Database, Plane, Registry, Employee, Vendor, Thief} {
		rows := 0
		for _, o := range r.Outcomes {
			if o.Adversary != who {
				continue
			}
			if rows++; rows == 1 {
				fmt.Fprintf(&b, "## %s\n\n| attack | tried | looked at | verdict | rule |\n|---|---|---|---|---|\n", strings.ToUpper(string(who[:1]))+string(who[1:]))
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", o.Name, cell(o.Try), cell(o.World), o.verdict(), cell(o.Rule+o.Error))
		}
		if rows > 0 {
			b.WriteString("\n")
		}
	}
	b.WriteString("## What is allowed\n\nAn attack that fails where everything fails proves nothing. In each scene this worked first:\n\n| what | seen in | |\n|---|---|---|\n")
	for _, o := range r.Allowed {
		worked := "worked"
		if o.Verdict != Succeeded {
			worked = "**did not work**: " + cell(o.Rule+o.Error)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(o.Try), cell(o.World), worked)
	}
	return b.String()
}

func (r Report) engines() string {
	if r.Isolated {
		return "isolated"
	}
	return "not isolated (`trust: development`): vendor code can do what the runner's user can, and guardrails only warn"
}

func (o Outcome) verdict() string {
	if o.Verdict == Refused {
		return string(o.Verdict)
	}
	return "**" + string(o.Verdict) + "**"
}

// cell is text in a cell of a table.
func cell(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "\\|")), " ")
	if len(text) > 160 {
		text = strings.ToValidUTF8(text[:157], "") + "…"
	}
	return text
}
