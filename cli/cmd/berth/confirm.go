package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// notConfirmed is the code of a request that the control plane refuses because
// it removes something and does not say its name.
const notConfirmed = "not_confirmed"

// confirmFlag adds --confirm to a command that may remove something for good.
func confirmFlag(cmd *cobra.Command, to *string, noun string) {
	cmd.Flags().StringVar(to, "confirm", "", "the "+noun+"'s name: remove what goes without asking (--auto-approve does not)")
}

// deed removes something for good.
type deed struct {
	what string // "deprovisioning install acme"
	name string // what has to be typed
	goes []string
}

// confirm has a person type the name, after showing what goes, unless it was
// given on the command line. Without either, nothing is done.
func (c *cli) confirm(ctx context.Context, given string, d deed) error {
	d.what = visible.Row(d.what)
	switch {
	case given == d.name:
		return nil
	case given != "":
		return usagef("--confirm %s is not the name: %s needs --confirm %s; nothing was done", given, d.what, d.name)
	}
	if len(d.goes) > 0 {
		output.Printf(c.err, "%s removes:\n", d.what)
		for _, what := range d.goes {
			output.Println(c.err, " ", visible.Row(what))
		}
	}
	if !c.canAsk() {
		return usagef("%s has to be confirmed, and this is not a terminal: use --confirm %s; nothing was done", d.what, d.name)
	}
	typed, err := c.asking().Line(ctx, fmt.Sprintf("This cannot be undone. Type %s to confirm %s: ", visible.Row(d.name), d.what))
	if err != nil {
		return err
	}
	if typed != d.name {
		return errors.New("not confirmed: that is not the name; nothing was done")
	}
	return nil
}

// refusedDeed is what goes, when a request was refused because it does not say
// the name of what it removes something of.
func refusedDeed(err error) (goes []string, refused bool) {
	var problem *api.Problem
	if !errors.As(err, &problem) || problem.Code != notConfirmed {
		return nil, false
	}
	if problem.Errors != nil {
		for _, item := range *problem.Errors {
			goes = append(goes, item.Message)
		}
	}
	return goes, true
}

// madeOf lists what there is of an install, as a deprovision finds it.
func madeOf(ctx context.Context, client *api.Client, install string) ([]string, error) {
	resp, err := client.ListResourcesWithResponse(ctx, install)
	if err != nil {
		return nil, err
	}
	page, err := api.Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	var goes []string
	for _, r := range page.Items {
		if r.Kind != ctlapi.ResourceKindStack && r.State != ctlapi.ResourceStateAbsent {
			goes = append(goes, fmt.Sprintf("%s %s (%s)", r.Kind, r.Name, r.State))
		}
	}
	return goes, nil
}
