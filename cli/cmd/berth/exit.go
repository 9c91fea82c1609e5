package main

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
	exitOK      = 0  // done
	exitFailed  = 1  // it did not work
	exitChanges = 2  // a plan found changes
	exitWaits   = 3  // it waits for a decision
	exitRefused = 4  // not allowed, or refused by the runner
	exitUsage   = 64 // the command line is wrong
)

// outcome ends a command with a code without there being an error: the command
// has already printed the message.
type outcome int

// Error implements error.
func (o outcome) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

func usagef(format string, args ...any) error { return usage.Errorf(format, args...) }

// exitCode decides the code for the error of a command.
func exitCode(err error) int {
	var (
		o       outcome
		u       usage.Error
		problem *api.Problem
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &o):
		return int(o)
	case errors.As(err, &u):
		return exitUsage
	case errors.As(err, &problem) && problem.Refused():
		return exitRefused
	}
	return exitFailed
}

// report writes an error for a person: one line, the single faults of an
// invalid request, and what to do. Further lines of an error are indented, so
// that none of them looks like our own.
func report(w io.Writer, err error) {
	var o outcome
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
