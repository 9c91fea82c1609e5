package apps

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/lint"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/policies"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func (c apps) validateCommand() *cobra.Command {
	var strict, deployable, fetch, allowPolicies bool
	cmd := &cobra.Command{
		Use:   "validate [DIR]",
		Short: "Check an app folder for mistakes",
		Long: `Reads the folder as sync does, without the control plane or the network, and reports
every mistake at once: file, line and column, what is wrong, its code, and what to write
instead. -o json gives editors and other programs a list.

Policies are loaded into the engine that runners have, where berth-policy is next to berth.
Berth does not check content from elsewhere, and says so in a note, unless you fetch it
with --fetch, as sync does.

Rules in lint.toml change the severity of warnings and notes, or hide them. Only berth
apps lint runs the checks named there.

The exit code is 1 if there are errors, and 0 if there are only warnings.`,
		Args: command.Exactly("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := appfolder.Open(args)
			if err != nil {
				return err
			}
			folder.AllowPolicies = allowPolicies
			if fetch {
				if folder.Fetched, err = sync.Elsewhere(cmd.Context(), folder.Root, nil, c.Err); err != nil {
					return err
				}
			}
			return c.validate(cmd.Context(), folder, validation{strict: strict, deployable: deployable})
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	cmd.Flags().BoolVar(&deployable, "deployable", false, "also report what this version cannot deploy yet, as sync does")
	AllowPoliciesFlag(cmd, &allowPolicies)
	cmd.Flags().BoolVar(&fetch, "fetch", false, "fetch content from elsewhere and check it too")
	return cmd
}

// AllowPoliciesFlag adds the flag that lets policies be wrong.
func AllowPoliciesFlag(cmd *cobra.Command, allow *bool) {
	cmd.Flags().BoolVar(allow, "allow-invalid-policies", false, "treat policies that their engine refuses as warnings")
}

// checking runs the checks of a folder's lint.toml.
type checking func(app *appconfig.App, checks []check.LintCheck) ([]place.Diagnostic, error)

// validation is how a folder is looked at. own adds what its checks say, and is nil where
// those are not run.
type validation struct {
	strict, deployable bool
	own                checking
}

// validate tells what is wrong with a folder.
func (c apps) validate(ctx context.Context, folder appfolder.Folder, v validation) error {
	app, found := check.Format(folder.Root, appconfig.LoadOptions{Fetched: folder.Fetched, AllowInvalidPolicies: folder.AllowPolicies})
	noApp := len(app.Origin.Files) == 0
	notYet := 0
	if !noApp && v.deployable {
		found = place.Sort(append(found, check.Deployable(app)...))
	} else if !noApp {
		notYet = findings.Count(check.Unsupported(app), place.Error)
	}
	lint, about := check.ReadLint(folder.Root)
	if !noApp {
		refused, err := policies.OfApp(ctx, c.Getenv, app, found, folder.AllowPolicies)
		if err != nil {
			return err
		}
		found = append(found, refused...)
	}
	if v.own != nil && !noApp {
		said, err := v.own(app, lint.Checks)
		if err != nil {
			return err
		}
		found = append(found, said...)
	}
	found = place.Sort(append(lint.Apply(found), about...))
	if v.strict {
		found = place.Strict(found)
	}
	found = folder.Located(found)
	err := c.showDiagnostics(found)
	if notYet > 0 && err == nil {
		output.Printf(c.Err, "this version cannot deploy %s in it yet: see berth apps validate %s --deployable\n", output.Plural(notYet, "thing"), folder.Written)
	}
	if err == nil && place.HasErrors(found) {
		err = command.Outcome(command.ExitFailed)
	}
	return err
}

// showDiagnostics prints what was found.
func (c apps) showDiagnostics(found []place.Diagnostic) error {
	if c.ForPrograms() {
		return command.PrintList(c.CLI, found, findings.View())
	}
	return findings.Show(c.Out, found, c.ColorOn(c.Out))
}

func (c apps) lintCommand() *cobra.Command {
	var strict, deployable bool
	cmd := &cobra.Command{
		Use:   "lint [DIR]",
		Short: "Validate an app folder and run its own checks",
		Long: `Does everything berth apps validate does, and runs the checks in lint.toml: executables
in the folder that get the parsed config as JSON on stdin and write what they find, one
JSON object per line, with file, line, col, severity and message.

A check runs with your permissions, so lint only folders whose programs you would run
yourself. It gets PATH and no other environment variable, 30 seconds, and no shell. No
other command runs it.`,
		Args: command.Exactly("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := appfolder.Open(args)
			if err != nil {
				return err
			}
			return c.validate(cmd.Context(), folder, validation{strict: strict, deployable: deployable, own: c.runChecks(cmd.Context(), folder)})
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	cmd.Flags().BoolVar(&deployable, "deployable", false, "also report what this version cannot deploy yet, as sync does")
	return cmd
}

// runChecks runs the checks of a folder one after the other.
func (c apps) runChecks(ctx context.Context, folder appfolder.Folder) checking {
	return func(app *appconfig.App, checks []check.LintCheck) (found []place.Diagnostic, err error) {
		if len(checks) == 0 {
			return nil, nil
		}
		config, err := json.Marshal(app)
		if err != nil {
			return nil, err
		}
		for _, one := range checks {
			output.Printf(c.Err, "running check %s\n", one.Name)
			found = append(found, lint.Run(ctx, one, lint.Options{Dir: folder.Written, Config: config, Path: c.Getenv("PATH")})...)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		return found, nil
	}
}
