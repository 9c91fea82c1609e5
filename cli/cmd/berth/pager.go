package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"

	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// showChanges shows changes whole. On a terminal, what does not fit on it goes
// through a pager; what has to be in sight for a decision is shown after that
// again.
func (c *cli) showChanges(w io.Writer, o changes.Options, list ...ctlapi.Change) error {
	o.Color = c.colorOn(w)
	var lines []string
	for _, change := range list {
		lines = append(lines, changes.Lines(change, o)...)
	}
	screen := follow.Screen{W: w}
	paged, err := c.page(w, lines)
	switch {
	case err != nil:
		return err
	case !paged:
		screen.Print(lines...)
	default:
		for _, change := range list {
			screen.Print(changes.Brief(change)...)
		}
	}
	return nil
}

// page shows lines in a pager, when w is a terminal that they do not fit on and
// nobody asked for none. It returns when the reader has left the pager.
func (c *cli) page(w io.Writer, lines []string) (bool, error) {
	screen, ok := terminal(w)
	if !ok || !isTerminal(c.in) || !isTerminal(c.out) || c.getenv("TERM") == "dumb" {
		return false, nil
	}
	columns, rows, err := term.GetSize(int(screen.Fd()))
	if err != nil || height(lines, columns) < rows {
		return false, nil //nolint:nilerr // of an unknown size everything fits
	}
	command := c.pager()
	if command == "" {
		return false, nil
	}
	cmd := exec.Command("sh", "-c", command) //nolint:noctx // it has the terminal in its hands: it ends when the reader leaves it
	cmd.Env = append(os.Environ(), "LESSCHARSET=utf-8")
	if c.getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=RX") // colours pass; what was read stays on the screen
	}
	cmd.Stdout, cmd.Stderr = screen, os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		output.Printf(c.err, "no pager: %v\n", err)
		return false, nil
	}
	through := follow.Screen{W: visible.NewWriter(to)}
	through.Print(lines...) // a reader who has seen enough closes the pipe
	_ = to.Close()
	if err := cmd.Wait(); err != nil {
		output.Printf(c.err, "the pager %q failed (%v); --no-pager does without\n", command, err)
		return false, nil
	}
	return true, nil
}

// pager is the command that pages, "" for none.
func (c *cli) pager() string {
	if c.noPager || c.getenv("NO_PAGER") != "" {
		return ""
	}
	command := strings.TrimSpace(c.getenv("PAGER"))
	if command == "cat" {
		return ""
	}
	if command != "" {
		return command
	}
	for _, name := range []string{"less", "more"} {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return ""
}

// height is how many rows lines take.
func height(lines []string, columns int) int {
	rows := 0
	for _, line := range lines {
		rows += 1 + max(0, follow.Width(line)-1)/max(1, columns)
	}
	return rows
}

// question asks about a change; it says so when not all of it was shown.
func question(change ctlapi.Change, about string) string {
	if change.Plan != nil && change.Plan.NotShownBytes > 0 {
		return fmt.Sprintf("%d bytes of it are not shown. Approve%s all the same? [y]es, [n]o (deny), [l]ater: ", change.Plan.NotShownBytes, about)
	}
	return "Approve" + about + "? [y]es, [n]o (deny), [l]ater: "
}
