// Package tfstates is `berth states`: what the vendor may know of Terraform states that
// only the customer can open.
package tfstates

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Doors is what the commands need of the rest of the command line.
type Doors struct {
	// Call runs a command with a client of the chosen context.
	Call   func(func(context.Context, *api.Client, []string) error) func(*cobra.Command, []string) error
	Args   func(names ...string) cobra.PositionalArgs
	Limit  func(*cobra.Command) *int
	Out    io.Writer
	Format func() (output.Options, error)
	Now    func() time.Time
}

// Command is `berth states`. noun makes a command that only holds verbs.
func Command(noun func(plural, singular, short string, verbs ...*cobra.Command) *cobra.Command, d Doors) *cobra.Command {
	return noun("states", "state", "States of Terraform, Pulumi and Helm: their addresses, history and locks", d.list(), d.history(), d.show(), d.pull(), d.unlock())
}

func (d Doors) list() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list INSTALL [COMPONENT]", Short: "List the states of an install, or the addresses in one", Args: d.Args("INSTALL", "[COMPONENT]"),
		Long: `Lists what is known of the newest state of the sandbox and of each component.
With a component, or sandbox, it lists the addresses in that state, as far as the customer's runner
tells them.`,
	}
	cmd.RunE = d.Call(func(ctx context.Context, client *api.Client, args []string) error {
		format, err := d.Format()
		if err != nil {
			return err
		}
		if len(args) == 2 {
			state, err := get(ctx, client, args[0], args[1])
			if err != nil {
				return err
			}
			if err := output.List(d.Out, format, api.Value(state.Objects), table.TerraformObject()); err != nil || format.Format != output.Table {
				return err
			}
			return d.missing(args[0], *state, ctlapi.TerraformStateLevelAddresses)
		}
		resp, err := client.ListTerraformStatesWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return output.List(d.Out, format, page.Items, table.TerraformState(d.Now()))
	})
	return cmd
}

func (d Doors) history() *cobra.Command {
	cmd := &cobra.Command{Use: "history INSTALL COMPONENT", Short: "List the states that a component, or the sandbox, has had", Args: d.Args("INSTALL", "COMPONENT")}
	limit := d.Limit(cmd)
	cmd.RunE = d.Call(func(ctx context.Context, client *api.Client, args []string) error {
		format, err := d.Format()
		if err != nil {
			return err
		}
		items, err := client.TerraformStates(ctx, *limit, args[0], args[1])
		if err != nil {
			return err
		}
		return output.List(d.Out, format, items, table.TerraformStateVersion(d.Now()))
	})
	return cmd
}

func (d Doors) show() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show INSTALL COMPONENT", Short: "Show what the customer lets you see of a state", Args: d.Args("INSTALL", "COMPONENT"),
		Long: `Shows serial, lock and addresses of the newest state of a component, or of the sandbox.
Attributes and outputs are shown where the customer has set --vendor-sees-state attributes on the
runner, and never sensitive values. The state itself is sealed to the customer.`,
	}
	cmd.RunE = d.Call(func(ctx context.Context, client *api.Client, args []string) error {
		format, err := d.Format()
		if err != nil {
			return err
		}
		state, err := get(ctx, client, args[0], args[1])
		if err != nil {
			return err
		}
		if format.Format != output.Table && format.Format != output.Wide {
			return output.One(d.Out, format, *state, table.TerraformState(d.Now()))
		}
		if err := d.print(*state); err != nil {
			return err
		}
		return d.missing(args[0], *state, ctlapi.TerraformStateLevelAttributes)
	})
	return cmd
}

// print shows a state to people.
func (d Doors) print(s ctlapi.TerraformState) error {
	if v := s.Current; v != nil {
		output.Printf(d.Out, "%s: serial %d, written %s by %s\n", s.Name, v.Serial, v.WrittenAt.UTC().Format(time.RFC3339), writer(*v))
		output.Printf(d.Out, "tool version %s, lineage %s, %s\n", either(api.Value(s.TerraformVersion), "unknown"), v.Lineage, v.Digest)
	}
	d.printLock(s)
	for _, kind := range slices.Sorted(maps.Keys(api.Value(s.Counts))) {
		output.Printf(d.Out, "  %d %s\n", (*s.Counts)[kind], kind)
	}
	for _, o := range api.Value(s.Objects) {
		tainted := ""
		if api.Value(o.Tainted) {
			tainted = " (tainted)"
		}
		output.Printf(d.Out, "\n%s%s\n", o.Address, tainted)
		if err := d.printValues(api.Value(o.Attributes)); err != nil {
			return err
		}
	}
	if n := api.Value(s.LeftOut); n > 0 {
		output.Printf(d.Out, "\n… and %d more\n", n)
	}
	if len(api.Value(s.Outputs)) == 0 {
		return nil
	}
	output.Println(d.Out, "\noutputs")
	return d.printValues(*s.Outputs)
}

func (d Doors) printValues(values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		raw, err := json.Marshal(values[name])
		if err != nil {
			return err
		}
		output.Printf(d.Out, "  %s = %s\n", name, visible.Line(string(raw)))
	}
	return nil
}

func (d Doors) printLock(s ctlapi.TerraformState) {
	l := s.Lock
	if l == nil {
		return
	}
	ended := "has not ended"
	if !l.Alive {
		ended = "has ended: berth states unlock frees it"
	}
	output.Printf(d.Out, "locked since %s by attempt %d of job %s, which %s\n", l.LockedAt.UTC().Format(time.RFC3339), l.Attempt, l.JobID, ended)
	if who := strings.TrimSpace(api.Value(l.Who) + " " + api.Value(l.Operation)); who != "" {
		output.Printf(d.Out, "holder of the lock: %s\n", who)
	}
}

func writer(v ctlapi.TerraformStateVersion) string {
	if v.ChangeID != nil {
		return "change " + *v.ChangeID
	}
	return "job " + v.JobID
}

// missing says what the customer keeps to itself, and how the customer sees it.
func (d Doors) missing(install string, s ctlapi.TerraformState, wanted ctlapi.TerraformStateLevel) error {
	level := api.Value(s.Level)
	if level == wanted || level == ctlapi.TerraformStateLevelAttributes || s.Current == nil {
		return nil
	}
	_, err := output.Printf(d.Out, "\nThe runner of %s tells no %s. The customer sees all of it with: berth-runner state show %s\nand lets you see %s with the runner's setting --vendor-sees-state %s (without sensitive values).\n",
		install, wanted, s.Name, wanted, wanted)
	return err
}

func (d Doors) pull() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pull INSTALL COMPONENT", Short: "Say how the customer gets a state out", Args: d.Args("INSTALL", "COMPONENT"),
		Long: `A state holds secrets of the customer and is sealed to the customer's key, so it cannot be
pulled from here. The command says which command of the runner does it.`,
	}
	cmd.RunE = d.Call(func(ctx context.Context, client *api.Client, args []string) error {
		state, err := get(ctx, client, args[0], args[1])
		if err != nil {
			return err
		}
		return fmt.Errorf("the state of %s is sealed to the customer, and nobody here has the key; on the runner's machine the customer writes it to a file with: berth-runner state pull %s",
			visible.Line(state.Name), visible.Line(state.Name))
	})
	return cmd
}

func (d Doors) unlock() *cobra.Command {
	cmd := &cobra.Command{
		Use: "unlock INSTALL COMPONENT", Short: "Free the lock of a state whose job has ended", Args: d.Args("INSTALL", "COMPONENT"),
		Long: `Shows who holds the lock of a component's state, or of the sandbox's, and frees it. The next
change of the resource does that by itself. A lock whose job has not ended stays: cancel its workflow,
or ask the customer, who can use berth-runner state unlock --force. An engine that comes back
afterwards writes no state any more. The org's chain records it.`,
	}
	cmd.RunE = d.Call(func(ctx context.Context, client *api.Client, args []string) error {
		format, err := d.Format()
		if err != nil {
			return err
		}
		before, err := get(ctx, client, args[0], args[1])
		if err != nil {
			return err
		}
		people := format.Format == output.Table || format.Format == output.Wide
		if people {
			d.printLock(*before)
		}
		resp, err := client.UnlockTerraformStateWithResponse(ctx, args[0], args[1], &ctlapi.UnlockTerraformStateParams{})
		if err != nil {
			return err
		}
		state, err := api.Body(resp.JSON200)
		switch {
		case err != nil:
			return err
		case !people:
			return output.One(d.Out, format, *state, table.TerraformState(d.Now()))
		case before.Lock == nil:
			_, err = output.Printf(d.Out, "nobody holds the lock of %s\n", state.Name)
		default:
			_, err = output.Printf(d.Out, "the lock of %s is free\n", state.Name)
		}
		return err
	})
	return cmd
}

func get(ctx context.Context, client *api.Client, install, resource string) (*ctlapi.TerraformState, error) {
	resp, err := client.GetTerraformStateWithResponse(ctx, install, resource)
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON200)
}

func either(text, none string) string {
	if text == "" {
		return none
	}
	return text
}
