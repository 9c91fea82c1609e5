package main

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/cli/internal/sync"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func (c *cli) appsValidateCommand() *cobra.Command {
	var strict, deployable, fetch bool
	cmd := &cobra.Command{
		Use:   "validate [DIR]",
		Short: "Tell everything that is wrong with an app folder",
		Long: `Reads the folder as sync does, with no control plane and no network, and tells
every mistake at once: file, line and column, what is wrong, its code, and what to
write instead. With -o json it is a list for editors and other programs.

Contents from elsewhere are a note, and not looked at; with --fetch they are fetched
as sync does.

Rules in lint.toml change the severity of warnings and notes, or leave them out. The
checks that it names are run by berth apps lint alone.

The exit code is 1 when there are errors, and 0 when there are only warnings.`,
		Example: "  berth apps validate\n  berth apps validate ./app --strict\n  berth apps validate ./app -o json",
		Args:    exactly("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := folderArg(args)
			if err != nil {
				return err
			}
			if fetch {
				if folder.fetched, err = sync.Elsewhere(cmd.Context(), folder.root, nil, c.err); err != nil {
					return err
				}
			}
			return c.validate(folder, strict, deployable, nil)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "take warnings as errors")
	cmd.Flags().BoolVar(&deployable, "deployable", false, "also tell what this version cannot deploy yet, as sync does")
	cmd.Flags().BoolVar(&fetch, "fetch", false, "fetch what stands elsewhere, and check it, too")
	return cmd
}

// checking runs the checks of a folder's lint.toml.
type checking func(app *appconfig.App, checks []check.LintCheck) ([]place.Diagnostic, error)

// validate tells what is wrong with a folder; own adds what its checks
// say, and is nil where those are not run.
func (c *cli) validate(folder appFolder, strict, deployable bool, own checking) error {
	app, found := check.Format(folder.root, appconfig.LoadOptions{Fetched: folder.fetched})
	noApp := len(app.Origin.Files) == 0
	notYet := 0
	if !noApp && deployable {
		found = place.Sort(append(found, check.Unsupported(app)...))
	} else if !noApp {
		notYet = countOf(check.Unsupported(app), place.Error)
	}
	lint, about := check.ReadLint(folder.root)
	if own != nil && !noApp {
		said, err := own(app, lint.Checks)
		if err != nil {
			return err
		}
		found = append(found, said...)
	}
	found = place.Sort(append(lint.Apply(found), about...))
	if strict {
		found = place.Strict(found)
	}
	found = folder.located(found)
	err := c.showDiagnostics(found)
	if notYet > 0 && err == nil {
		output.Printf(c.err, "%s of it cannot be deployed by this version: see berth apps validate %s --deployable\n", plural(notYet, "thing"), folder.written)
	}
	if err == nil && place.HasErrors(found) {
		err = outcome(exitFailed)
	}
	return err
}

// showDiagnostics prints what was found, file by file, and how much it is.
func (c *cli) showDiagnostics(found []place.Diagnostic) error {
	if c.forPrograms() {
		return printList(c, found, diagnosticView())
	}
	files, last := 0, ""
	color := c.colorOn(c.out)
	for _, d := range found {
		if d.File != last {
			if files++; files > 1 {
				fmt.Fprintln(c.out)
			}
			last = d.File
		}
		output.Printf(c.out, "%s %s %s %s\n", pointsTo(d), output.Paint(color, severityStyles[d.Severity], string(d.Severity)), plain(d.Message),
			output.Paint(color, output.Dim, "["+string(d.Code)+"]"))
		if d.Remedy != "" {
			output.Printf(c.out, "  try: %s\n", plain(d.Remedy))
		}
	}
	if files > 0 {
		fmt.Fprintln(c.out)
	}
	_, err := output.Println(c.out, counts(found, files))
	return err
}

var severityStyles = map[place.Severity]output.Style{place.Error: output.Bad, place.Warning: output.Notice, place.Note: output.Dim}

// pointsTo is where a diagnostic points to, as editors and terminals know it.
func pointsTo(d place.Diagnostic) string {
	if d.Line == 0 {
		return output.Printable(d.File) + ":"
	}
	return fmt.Sprintf("%s:%d:%d:", output.Printable(d.File), d.Line, d.Column)
}

// plain keeps a message to one line without what could steer a terminal: it may
// quote anything from a file.
func plain(text string) string {
	return output.Printable(strings.Join(strings.Split(strings.TrimSpace(text), "\n"), " "))
}

// counts is the last line: "2 errors, 1 warning in 2 files".
func counts(found []place.Diagnostic, files int) string {
	var parts []string
	for _, severity := range []place.Severity{place.Error, place.Warning, place.Note} {
		if n := countOf(found, severity); n > 0 {
			parts = append(parts, plural(n, string(severity)))
		}
	}
	if len(parts) == 0 {
		return "no errors, no warnings"
	}
	return strings.Join(parts, ", ") + " in " + plural(files, "file")
}

func countOf(found []place.Diagnostic, severity place.Severity) int {
	n := 0
	for _, d := range found {
		if d.Severity == severity {
			n++
		}
	}
	return n
}

// plural counts things: "1 file", "2 files".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func diagnosticView() output.View[place.Diagnostic] {
	return output.View[place.Diagnostic]{Name: func(d place.Diagnostic) string { return strings.TrimSuffix(pointsTo(d), ":") }}
}
