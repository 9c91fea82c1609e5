package main

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
)

// format reads -o and --json.
func (c *cli) format() (output.Options, error) {
	o, err := output.Parse(c.outputFlag, c.jsonFlag)
	if err != nil {
		return o, usage.Error{Err: err}
	}
	o.Color = c.colorOn(c.out)
	o.Columns = columnsOf(c.out)
	return o, nil
}

// usualColumns is how wide a terminal is that does not say it.
const usualColumns = 80

// columnsOf is how wide the terminal behind a stream is; 0 for no terminal.
func columnsOf(stream any) int {
	f, ok := terminal(stream)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return usualColumns
	}
	return columns
}

// colorOn: only a terminal, and only when nobody asked for none.
func (c *cli) colorOn(w io.Writer) bool {
	return c.getenv("NO_COLOR") == "" && c.getenv("TERM") != "dumb" && isTerminal(w)
}

func isTerminal(stream any) bool {
	_, ok := terminal(stream)
	return ok
}

// terminal returns the terminal behind a stream.
func terminal(stream any) (*os.File, bool) {
	f, ok := raw(stream).(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// raw is a stream without what makes text visible. What goes there steers the
// terminal.
func raw(stream any) any {
	if wrapped, ok := stream.(interface{ Unwrap() io.Writer }); ok {
		return wrapped.Unwrap()
	}
	return stream
}

func printList[T any](c *cli, items []T, v output.View[T]) error {
	o, err := c.format()
	if err != nil {
		return err
	}
	return output.List(c.out, o, items, v)
}

func printOne[T any](c *cli, item T, v output.View[T]) error {
	o, err := c.format()
	if err != nil {
		return err
	}
	return output.One(c.out, o, item, v)
}

// forPrograms tells whether stdout is to hold JSON, YAML or names only.
func (c *cli) forPrograms() bool {
	return c.jsonFlag != "" || c.outputFlag != string(output.Table) && c.outputFlag != string(output.Wide)
}

// age is how long ago something was.
func (c *cli) age(t time.Time) string { return follow.Duration(c.now().Sub(t)) }

// value is api.Value: nearly every command needs it.
func value[T any](p *T) T { return api.Value(p) }

// optional is api.Optional.
func optional[T comparable](v T) *T { return api.Optional(v) }

// limitFlag adds --limit to a command that lists.
func limitFlag(cmd *cobra.Command) *int {
	limit := new(int)
	cmd.Flags().IntVar(limit, "limit", 100, "show at most this many; 0 shows all")
	return limit
}
