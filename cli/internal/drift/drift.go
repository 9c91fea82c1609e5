package drift

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/pause"
)

// Look is `berth installs drift` without a deploy.
type Look struct {
	Install, Component string // Component "" for all
	// Now has the runner look first, and waits up to Wait for it.
	Now  bool
	Wait time.Duration
}

// askEvery is how often the answer is looked for.
const askEvery = 2 * time.Second

// Show prints what the last look found.
func (l Look) Show(ctx context.Context, c *command.CLI, client *api.Client) error {
	components, err := l.read(ctx, client)
	if err != nil {
		return err
	}
	var late []string
	if l.Now {
		if components, late, err = l.now(ctx, client); err != nil {
			return err
		}
	}
	if err := command.PrintList(c, components, componentView(c.Now())); err != nil {
		return err
	}
	if !c.ForPrograms() {
		lines := append(differences(components, c.Now(), l.Component != ""), nextSteps(l.Install, components)...)
		for _, line := range lines {
			output.Println(c.Out, line)
		}
	}
	if len(late) > 0 {
		return fmt.Errorf("the runner has not looked at %s within %s; what is shown is older: berth doctor %s says whether it is online, and it does not look while a change goes on",
			strings.Join(late, ", "), l.Wait, l.Install)
	}
	return nil
}

func (l Look) read(ctx context.Context, client *api.Client) ([]ctlapi.ComponentDrift, error) {
	resp, err := client.GetDriftWithResponse(ctx, l.Install, &ctlapi.GetDriftParams{Component: api.Optional(l.Component)})
	if err != nil {
		return nil, err
	}
	found, err := api.Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	return found.Components, nil
}

// now has the runner look and waits for that; late are the components that it has not
// looked at in time.
func (l Look) now(ctx context.Context, client *api.Client) (components []ctlapi.ComponentDrift, late []string, err error) {
	resp, err := client.AskForDriftWithResponse(ctx, l.Install, ctlapi.DriftQuestion{Component: api.Optional(l.Component)})
	if err != nil {
		return nil, nil, err
	}
	asked, err := api.Body(resp.JSON202)
	if err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(l.Wait); ; {
		if components, err = l.read(ctx, client); err != nil {
			return nil, nil, err
		}
		late = nil
		for _, c := range components {
			if c.State != ctlapi.ComponentDriftStateNotLookedAt && (c.BeganAt == nil || c.BeganAt.Before(asked.AskedAt)) {
				late = append(late, c.Name)
			}
		}
		if len(late) == 0 || time.Now().After(deadline) {
			return components, late, nil
		}
		if err := pause.For(ctx, askEvery); err != nil {
			return nil, nil, err
		}
	}
}

// Command is `berth drift`.
func Command(c *command.CLI) *cobra.Command {
	var install, app, class string
	var closed bool
	cmd := &cobra.Command{
		Use: "list", Short: "List drift in all installs, newest first", Args: command.Exactly(),
		Long: "Lists the components that drifted from what was deployed, in all installs that you may see.\nberth installs drift INSTALL shows what differs, and who did it.",
	}
	limit := command.LimitFlag(cmd)
	cmd.Flags().StringVar(&install, "install", "", "only of this install")
	cmd.Flags().StringVar(&app, "app", "", "only of installs of this app")
	cmd.Flags().Var(usage.OneOf(&class, "human_edit", "real"), "class", "only human_edit (somebody edited it) or real (nobody explains it)")
	cmd.Flags().BoolVar(&closed, "closed", false, "what is over, too")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Drift(ctx, *limit, ctlapi.ListDriftParams{
			Install: api.Optional(install), App: api.Optional(app), Class: api.Optional(ctlapi.DriftClass(class)), Closed: &closed,
		})
		if err != nil {
			return err
		}
		return command.PrintList(c, items, episodeView(c.Now()))
	})
	return command.Noun("drift", "drift", "Where installs differ from what was deployed", cmd)
}
