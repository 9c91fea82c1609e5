package main

import (
	"fmt"
	"io"

	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/pager"
	"github.com/berth-dev/berth/pkg/ctlapi"
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
	paged, err := c.pager(w).Page(lines)
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

// pager pages what is written to w.
func (c *cli) pager(w io.Writer) pager.Pager {
	p := pager.Pager{Getenv: c.getenv, Off: c.noPager, Err: c.err}
	if isTerminal(c.in) && isTerminal(c.out) {
		p.Screen, _ = terminal(w)
	}
	return p
}

// question asks about a change; it says so when not all of it was shown.
func question(change ctlapi.Change, about string) string {
	if change.Plan != nil && change.Plan.NotShownBytes > 0 {
		return fmt.Sprintf("%d bytes of it are not shown. Approve%s all the same? [y]es, [n]o (deny), [l]ater: ", change.Plan.NotShownBytes, about)
	}
	return "Approve" + about + "? [y]es, [n]o (deny), [l]ater: "
}
