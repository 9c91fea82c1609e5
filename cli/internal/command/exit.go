package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/remedy"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/visible"
)

// Exit codes. Scripts branch on them, so they never change.
const (
	ExitOK      = 0  // done
	ExitFailed  = 1  // it did not work
	ExitChanges = 2  // a plan found changes
	ExitWaits   = 3  // it waits for a decision
	ExitRefused = 4  // not allowed, or refused by the runner
	ExitUsage   = 64 // the command line is wrong
)

// Outcome ends a command with a code without there being an error: the command
// has already printed the message.
type Outcome int

// Error implements error.
func (o Outcome) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// ExitCode decides the code for the error of a command.
func ExitCode(err error) int {
	var (
		o       Outcome
		u       usage.Error
		problem *api.Problem
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &o):
		return int(o)
	case errors.As(err, &u):
		return ExitUsage
	case errors.As(err, &problem) && problem.Refused():
		return ExitRefused
	}
	return ExitFailed
}

// Report writes an error for a person: one line, the single faults of an
// invalid request, and what to do. Further lines of an error are indented, so
// that none of them looks like our own.
func Report(w io.Writer, err error) {
	var o Outcome
	if err == nil || errors.As(err, &o) {
		return
	}
	fmt.Fprintln(w, "berth:", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "\n  "))
	var problem *api.Problem
	if errors.As(err, &problem) {
		for _, line := range problem.Lines() {
			fmt.Fprintln(w, "  "+visible.Row(line))
		}
	}
	if try := remedy.For(err); try != "" {
		fmt.Fprintln(w, "try:", visible.Row(try))
	}
}
