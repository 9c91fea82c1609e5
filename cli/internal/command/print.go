package command

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
)

// Format reads -o and --json.
func (c *CLI) Format() (output.Options, error) {
	o, err := output.Parse(c.OutputFlag, c.JSONFlag)
	if err != nil {
		return o, usage.Error{Err: err}
	}
	o.Color = c.ColorOn(c.Out)
	o.Columns = ColumnsOf(c.Out)
	return o, nil
}

// usualColumns is how wide a terminal is that does not say it.
const usualColumns = 80

// ColumnsOf is how wide the terminal behind a stream is; 0 for no terminal.
func ColumnsOf(stream any) int {
	f, ok := Terminal(stream)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return usualColumns
	}
	return columns
}

// ColorOn tells whether to color what goes to w: only a terminal, and only when nobody asked for none.
func (c *CLI) ColorOn(w io.Writer) bool {
	return c.Getenv("NO_COLOR") == "" && c.Getenv("TERM") != "dumb" && IsTerminal(w)
}

// IsTerminal tells whether a stream is a terminal, wrapped or not.
func IsTerminal(stream any) bool {
	_, ok := Terminal(stream)
	return ok
}

// Terminal returns the terminal behind a stream.
func Terminal(stream any) (*os.File, bool) {
	f, ok := Raw(stream).(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// Raw is a stream without what makes text visible. What goes there steers the
// terminal.
func Raw(stream any) any {
	if wrapped, ok := stream.(interface{ Unwrap() io.Writer }); ok {
		return wrapped.Unwrap()
	}
	return stream
}

// PrintList prints items in the format that was asked for.
func PrintList[T any](c *CLI, items []T, v output.View[T]) error {
	o, err := c.Format()
	if err != nil {
		return err
	}
	return output.List(c.Out, o, items, v)
}

// PrintOne prints an item in the format that was asked for.
func PrintOne[T any](c *CLI, item T, v output.View[T]) error {
	o, err := c.Format()
	if err != nil {
		return err
	}
	return output.One(c.Out, o, item, v)
}

// ForPrograms tells whether stdout is to hold JSON, YAML or names only.
func (c *CLI) ForPrograms() bool {
	return c.JSONFlag != "" || c.OutputFlag != string(output.Table) && c.OutputFlag != string(output.Wide)
}

// Age is how long ago something was.
func (c *CLI) Age(t time.Time) string { return follow.Duration(c.Now().Sub(t)) }

// LimitFlag adds --limit to a command that lists.
func LimitFlag(cmd *cobra.Command) *int {
	limit := new(int)
	cmd.Flags().IntVar(limit, "limit", 100, "show at most this many; 0 shows all")
	return limit
}
