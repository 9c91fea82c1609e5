package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/cli/internal/manual"
	"github.com/berth-dev/berth/cli/internal/words"
)

const reference = "../../../docs/reference/cli.md"

// The reference page is what the commands say of themselves.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	c := &cli{&command.CLI{Getenv: func(string) string { return "" }}}
	root := c.root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var page strings.Builder
	page.WriteString(`<!-- Generated from the commands: go test ./cli/cmd/berth -run TestReferencePage -update -->
# The command line

Every command takes ` + "`-o table|wide|json|yaml|name`" + `, ` + "`--json field,field`" + `, ` + "`--context`" + `, ` + "`--org`" + ` and
` + "`--no-pager`" + `. You can write nouns in the singular. Commands print results to stdout and progress to stderr. ` + "`apps graph` and `apps schema`" + ` have
their own ` + "`-o`" + `.

| exit code | means |
|---|---|
| 0 | done |
| 1 | failed, or somebody denied a change |
| 2 | a plan found changes |
| 3 | waiting for a decision |
| 4 | not allowed, or refused by the runner |
| 64 | the command line is wrong |

| variable | means |
|---|---|
| ` + "`BERTH_URL`, `BERTH_TOKEN`" + ` | the control plane and the token, instead of a context |
| ` + "`BERTH_CONTEXT`, `BERTH_ORG`" + ` | a context in ~/.config/berth/config.json; the org to work in |
| ` + "`BERTH_DATA`, `BERTH_PORT`" + ` | berth up: the data folder; the first of its four ports (8700) |
| ` + "`BERTH_PUBLIC_URL`, `BERTH_RUNNER_IMAGE`" + ` | berth up: the address of its front for runners in clusters; the image those runners use |
| ` + "`DATABASE_URL`, `BERTH_PG_BIN`" + ` | berth up: the Postgres to use; the folder with Postgres binaries |
| ` + "`BERTH_LIBEXEC`, `BERTH_TERRAFORM`" + ` | berth up: the folder with the other executables; the runners' Terraform |
| ` + "`NO_COLOR`" + ` | no colours |
| ` + "`PAGER`, `NO_PAGER`" + ` | the pager for changes that do not fit on the terminal (default: less); no pager |

Text from elsewhere (names, plans, errors, logs) cannot control your terminal: berth writes out control characters, marks that change
the direction of text, invisible characters and bytes that are not UTF-8, as ` + "`⟨U+202E⟩` or `⟨xFF⟩`" + `. When it
shows a change, it also writes the bracket ⟨ itself as ` + "`⟨U+27E8⟩`" + `, so the text is unambiguous. JSON and YAML escape the same characters.

For manual pages, run ` + "`berth man ~/.local/share/man/man1`" + ` (for all users, as root: ` + "`berth man /usr/local/share/man/man1`" + `); then
` + "`man berth-deploy`" + ` shows the page of ` + "`berth deploy`" + `. Run it again after an upgrade.

`)
	write(&page, root)
	page.WriteString("## Words of other tools\n\nThese are in no help, and do what you would expect, or say what to type instead:\n`berth " + strings.Join(words.Known(), "`, `berth ") + "`.\n")
	goldentest.File(t, reference, page.String())
}

// Every command that the help shows has a manual page, with its flags and examples.
func TestManualPages(t *testing.T) {
	t.Parallel()
	c := &cli{&command.CLI{Getenv: func(string) string { return "" }, Now: time.Now}}
	root := c.root()
	dir := t.TempDir()
	if err := manual.Write(root, dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page, err := os.ReadFile(filepath.Join(dir, path+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(string(page), `\fB--`+f.Name+`\fP`) {
				t.Errorf("the page of %s has no --%s", path, f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && sub.Name() != "help" {
				visit(sub)
			}
		}
	}
	visit(root)
}

func write(page *strings.Builder, cmd *cobra.Command) {
	if cmd.HasParent() && cmd.Name() != "help" && cmd.Name() != "completion" && cmd.Parent().Name() != "completion" {
		fmt.Fprintf(page, "## berth%s\n\n%s.\n\n", strings.TrimPrefix(cmd.CommandPath(), "berth"), cmd.Short)
		if cmd.Long != "" {
			page.WriteString(cmd.Long + "\n\n")
		}
		if !cmd.HasSubCommands() {
			fmt.Fprintf(page, "```\n%s\n```\n\n", cmd.UseLine())
		}
		if cmd.Example != "" {
			fmt.Fprintf(page, "```\n%s\n```\n\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
		}
		writeFlags(page, cmd)
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			write(page, sub)
		}
	}
}

func writeFlags(page *strings.Builder, cmd *cobra.Command) {
	rows := 0
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		if rows++; rows == 1 {
			page.WriteString("| flag | means |\n|---|---|\n")
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		usage := strings.ReplaceAll(f.Usage, "|", "\\|")
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(page, "| `%s` | %s |\n", name, usage)
	})
	if rows > 0 {
		page.WriteString("\n")
	}
}
