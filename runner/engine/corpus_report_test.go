package engine_test

import (
	"fmt"
	"strings"
)

// reportOf is the corpus as docs/reports/health-faults.md shows it.
func reportOf(all []played) string {
	var b strings.Builder
	var tp, fp, fn, tn, named, faults, unclears, unclearRight int
	for _, p := range all {
		faults += map[bool]int{true: 1}[p.Fault]
		if p.Want == unclear {
			unclears++
			unclearRight += map[bool]int{true: 1}[p.Verdict == unclear]
			continue
		}
		switch alarm := p.Verdict == bad; {
		case alarm && p.Want == bad:
			tp++
			named += map[bool]int{true: 1}[p.Named]
		case alarm:
			fp++
		case p.Want == bad:
			fn++
		default:
			tn++
		}
	}
	fmt.Fprintf(&b, "%d faults and %d quiet scenes.\n\n", faults, len(all)-faults)
	fmt.Fprintf(&b, "| | |\n|---|---|\n| precision of `unhealthy` | %s (%d of %d) |\n| recall of `unhealthy` | %s (%d of %d) |\n| of those found, the verdict names the cause | %d of %d |\n",
		share(tp, tp+fp), tp, tp+fp, share(tp, tp+fn), tp, tp+fn, named, tp)
	fmt.Fprintf(&b, "| quiet scenes that stay healthy | %d of %d |\n| what nobody can tell is `unknown` | %d of %d |\n", tn, tn+fp, unclearRight, unclears)
	table := func(title string, fault bool) {
		fmt.Fprintf(&b, "\n## %s\n\n| scene | wanted | verdict | after | what the last bad look said |\n|---|---|---|---|---|\n", title)
		for _, p := range all {
			if p.Fault != fault {
				continue
			}
			after, says := "", ""
			for i, l := range p.Looks {
				if judged(good, p.Looks[:i+1]) == p.Verdict && after == "" && p.Verdict != good {
					after = fmt.Sprintf("%d s", l.AtSeconds)
				}
				if l.Outcome != "good" {
					says = l.Says
				}
			}
			mark := ""
			if p.Verdict != p.Want {
				mark = "**"
			}
			fmt.Fprintf(&b, "| %s | %s | %s%s%s | %s | %s |\n", p.Name, p.Want, mark, p.Verdict, mark, after, cell(says))
		}
	}
	table("Faults", true)
	table("Quiet scenes", false)
	return b.String()
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// cell is a text that fits into a table.
func cell(text string) string {
	const most = 160
	text = strings.ReplaceAll(text, "|", "\\|")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
