// Package ask asks a person on a terminal what to do.
package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
)

// Person reads questions on Out and types answers into In.
type Person struct {
	In  io.Reader
	Out io.Writer

	lines *bufio.Reader // of In, once something was asked
}

// Ask repeats a question until the answer can be understood, and explains the
// answers to who types ?. Without anybody there it is follow.Later.
func (p *Person) Ask(ctx context.Context, q Question) (follow.Answer, error) {
	for {
		output.Printf(p.Out, "%s", q.Text)
		line, err := p.readLine(ctx)
		if errors.Is(err, io.EOF) { // the input has ended
			fmt.Fprintln(p.Out)
			return follow.Later, nil
		}
		if err != nil {
			return follow.Later, err
		}
		if answer, ok := answerOf(line); ok {
			return answer, nil
		}
		if strings.TrimSpace(line) == "?" {
			for _, choice := range q.Choices {
				output.Println(p.Out, " ", choice)
			}
		}
	}
}

// Line asks once for something that is typed as it is, and returns it without the
// spaces around it; empty without anybody there.
func (p *Person) Line(ctx context.Context, question string) (string, error) {
	output.Printf(p.Out, "%s", question)
	line, err := p.readLine(ctx)
	if errors.Is(err, io.EOF) { // the input has ended, maybe within the line: nobody finished it
		fmt.Fprintln(p.Out)
		return "", nil
	}
	return strings.TrimSpace(line), err
}

// Secret asks once for something that is not shown while it is typed. It takes the
// line as it is, without its end.
func (p *Person) Secret(ctx context.Context, question string) (string, error) {
	output.Printf(p.Out, "%s", question)
	if file, ok := p.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		before, err := term.GetState(int(file.Fd()))
		if err != nil {
			return "", err
		}
		// Ctrl-C ends the program in the middle of this: then nobody else shows
		// again what is typed.
		restore := context.AfterFunc(ctx, func() { _ = term.Restore(int(file.Fd()), before) })
		defer restore()
		typed, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(p.Out)
		return string(typed), err
	}
	line, err := p.readLine(ctx)
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

func answerOf(line string) (follow.Answer, bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return follow.Approve, true
	case "n", "no":
		return follow.Deny, true
	case "l", "later", "":
		return follow.Later, true
	}
	return follow.Later, false
}

// readLine returns when a line was typed or the context ends; in that case the
// reader is left behind, and the program is about to end.
func (p *Person) readLine(ctx context.Context) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		if p.lines == nil {
			p.lines = bufio.NewReader(p.In)
		}
		line, err := p.lines.ReadString('\n')
		done <- read{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-done:
		return r.line, r.err
	}
}
