package ask

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Question is what a person is asked.
type Question struct {
	Text string
	// Choices explain each answer, one a line, to who types ?.
	Choices []string
}

// AboutChange asks about a change; about names it, when it is one of several. It
// says so when not all of the change was shown.
func AboutChange(change ctlapi.Change, about string) Question {
	if about != "" {
		about = " " + about
	}
	text := "Approve" + about + "? "
	if change.Plan != nil && change.Plan.NotShownBytes > 0 {
		text = fmt.Sprintf("%d bytes of it are not shown. Approve%s anyway? ", change.Plan.NotShownBytes, about)
	}
	return Question{
		Text: text + "[y]es, [n]o (deny), [l]ater, [?]: ",
		Choices: []string{
			"y, yes           approve exactly what was shown, and no other effect",
			"n, no            deny it: nothing is changed, what depends on it is not done;",
			"                 berth retry plans it again",
			"l, later, Enter  decide nothing: it waits for berth approve or berth deny",
			"?                show this",
		},
	}
}

// AboutAll asks about everything that a workflow, which title names, proposes.
func AboutAll(title string) Question {
	return Question{
		Text: "Approve these and all that follow in " + title + "? [y]es, [l]ater, [?]: ",
		Choices: []string{
			"y, yes           approve what was shown, and, unseen, what it proposes later",
			"l, later, Enter  decide nothing: they wait for berth approve or berth deny",
			"?                show this",
		},
	}
}

// AboutFiles asks whether to do what summary says that install files change.
func AboutFiles(summary string) Question {
	return Question{
		Text: summary + ". Do this? [y]es, [n]o, [?]: ",
		Choices: []string{
			"y, yes        change the installs as shown; berth deploy brings it to them",
			"n, no, Enter  change nothing",
			"?             show this",
		},
	}
}
