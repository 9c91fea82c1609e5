package review

import (
	"fmt"
	"strings"
	"time"
)

// Markdown is the dossier for people.
func Markdown(f Facts, list []Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Security review of runner %s\n\nInstall %s, version %s, computed %s from the state of this runner.\n\n", or(f.RunnerID, "(not enrolled)"), or(f.InstallID, "none"), f.Version, f.At.UTC().Format(time.RFC3339))
	count := map[Verdict]int{}
	for _, a := range list {
		count[a.Verdict]++
	}
	fmt.Fprintf(&b, "%d yes, %d partly, %d no, %d not yet.\n", count[Yes], count[Partly], count[No], count[NotYet])
	for _, a := range list {
		fmt.Fprintf(&b, "\n## %d. %s\n\n**%s**: %s.\n\n", a.Number, a.Question, a.Verdict, a.Text)
		fmt.Fprintf(&b, "- see it: `%s`\n", strings.Join(a.Commands, "`, `"))
		if len(a.Tests) > 0 {
			fmt.Fprintf(&b, "- tests: `%s`\n", strings.Join(a.Tests, "`, `"))
		}
		fmt.Fprintf(&b, "- controls: %s\n", strings.Join(a.Controls, ", "))
	}
	return b.String()
}
