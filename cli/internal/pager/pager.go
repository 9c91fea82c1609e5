// Package pager shows what does not fit on a terminal in the reader's own pager.
package pager

import (
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/visible"
)

// Pager pages on one terminal.
type Pager struct {
	Screen *os.File // the terminal; nil pages nothing
	Getenv func(string) string
	Off    bool      // nobody wants a pager
	Err    io.Writer // receives a line when the pager cannot start
}

// Page shows lines in a pager, when there is a terminal that they do not fit on
// and nobody asked for none. It returns when the reader has left the pager.
func (p Pager) Page(lines []string) (bool, error) {
	if p.Screen == nil || p.Getenv("TERM") == "dumb" {
		return false, nil
	}
	columns, rows, err := term.GetSize(int(p.Screen.Fd()))
	if err != nil || height(lines, columns) < rows {
		return false, nil //nolint:nilerr // of an unknown size everything fits
	}
	command := p.command()
	if command == "" {
		return false, nil
	}
	cmd := exec.Command("sh", "-c", command) //nolint:noctx // it has the terminal in its hands: it ends when the reader leaves it
	cmd.Env = append(os.Environ(), "LESSCHARSET=utf-8")
	if p.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=RX") // colours pass; what was read stays on the screen
	}
	cmd.Stdout, cmd.Stderr = p.Screen, os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		output.Printf(p.Err, "cannot use a pager: %v\n", err)
		return false, nil
	}
	through := follow.Screen{W: visible.NewWriter(to)}
	through.Print(lines...) // a reader who has seen enough closes the pipe
	_ = to.Close()
	if err := cmd.Wait(); err != nil {
		output.Printf(p.Err, "the pager %q failed (%v); turn it off with --no-pager\n", command, err)
		return false, nil
	}
	return true, nil
}

// command is the command that pages, "" for none.
func (p Pager) command() string {
	if p.Off || p.Getenv("NO_PAGER") != "" {
		return ""
	}
	command := strings.TrimSpace(p.Getenv("PAGER"))
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
