package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/lint"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func (c *cli) appsLintCommand() *cobra.Command {
	var strict, deployable bool
	cmd := &cobra.Command{
		Use:   "lint [DIR]",
		Short: "Validate an app folder, and run its own checks",
		Long: `Does all that berth apps validate does, and runs the checks of lint.toml: executables
of the folder that get the parsed config as JSON on stdin and write what they find,
one JSON object a line, with file, line, col, severity and message.

A check runs as you, so lint only folders that you would run programs of. It gets a
PATH and no other environment, 30 seconds, and no shell. No other command runs it.`,
		Example: "  berth apps lint\n  berth apps lint ./app --strict",
		Args:    exactly("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := appfolder.Open(args)
			if err != nil {
				return err
			}
			return c.validate(folder, strict, deployable, c.runChecks(cmd.Context(), folder))
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "take warnings as errors")
	cmd.Flags().BoolVar(&deployable, "deployable", false, "also tell what this version cannot deploy yet, as sync does")
	return cmd
}

// runChecks runs the checks of a folder one after the other.
func (c *cli) runChecks(ctx context.Context, folder appfolder.Folder) checking {
	return func(app *appconfig.App, checks []check.LintCheck) (found []place.Diagnostic, err error) {
		if len(checks) == 0 {
			return nil, nil
		}
		config, err := json.Marshal(app)
		if err != nil {
			return nil, err
		}
		for _, one := range checks {
			found = append(found, lint.Run(ctx, one, lint.Options{Dir: folder.Written, Config: config, Path: c.getenv("PATH")})...)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		return found, nil
	}
}
