package command

import (
	"context"
	"io"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/ask"
	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
)

// Streams are where a command reads from and writes to. Whatever a command writes
// is made visible on its way (package visible), so that no text of somebody else
// steers the terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// CLI is what all commands of one command line share.
type CLI struct {
	Streams
	Getenv func(string) string
	Now    func() time.Time

	Running bool // a command was found, and its flags and arguments are right

	ContextFlag string // --context
	OrgFlag     string // --org
	OutputFlag  string // -o
	JSONFlag    string // --json
	NoPager     bool   // --no-pager

	person *ask.Person // at the terminal, once somebody was asked
}

// Target finds out where to go and as whom.
func (c *CLI) Target() (contexts.Target, error) {
	file, err := c.ContextFile()
	if err != nil {
		return contexts.Target{}, err
	}
	target, err := contexts.Resolve(file, c.ContextFlag, c.Getenv)
	if c.OrgFlag != "" {
		target.Org = c.OrgFlag
	}
	return target, err
}

// ContextFile reads the file of contexts. Without a home there are none; variables
// of the environment may still say all.
func (c *CLI) ContextFile() (*contexts.File, error) {
	path, err := contexts.Path(c.Getenv)
	if err != nil {
		path = ""
	}
	return contexts.Load(path)
}

// Client talks to the control plane of the context.
func (c *CLI) Client() (*api.Client, error) { return c.ClientWith(0) }

// ClientWith is a client with other than the usual patience.
func (c *CLI) ClientWith(patience time.Duration) (*api.Client, error) {
	target, err := c.Target()
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{
		URL: target.URL, Token: target.Token, Org: target.Org, Patience: patience,
		Say: func(line string) { output.Println(c.Err, line) },
	})
}

// CanAsk tells whether somebody sits at the terminal.
func (c *CLI) CanAsk() bool { return IsTerminal(c.In) && IsTerminal(c.Err) }

// Ask asks the person at the terminal.
func (c *CLI) Ask(ctx context.Context, question ask.Question) (follow.Answer, error) {
	return c.Person().Ask(ctx, question)
}

// Person is who sits at the terminal.
func (c *CLI) Person() *ask.Person {
	if c.person == nil {
		c.person = &ask.Person{In: c.In, Out: c.Err}
	}
	return c.person
}
