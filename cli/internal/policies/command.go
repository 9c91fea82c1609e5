package policies

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
)

// engine finds the engine, or says what to do.
func engine(c *command.CLI) (string, error) {
	path, err := Find(c.Getenv)
	if errors.Is(err, ErrMissing) {
		err = advised{err, Remedy}
	}
	return path, err
}

// advised is an error with what to do about it.
type advised struct {
	error
	remedy string
}

func (a advised) Unwrap() error  { return a.error }
func (a advised) Remedy() string { return a.remedy }

func checkCommand(c *command.CLI) *cobra.Command {
	v0 := false
	cmd := &cobra.Command{
		Use:   "check PATH",
		Short: "Load policies, and say what is wrong with them",
		Long: `Loads a file, or all policies in a folder, into the engine that runners have, without the
control plane or the network: YAML of Kyverno (ClusterPolicy, Policy, ValidatingPolicy) and
Rego (*.rego but for tests). Says in which line something is wrong. The exit code is 1 if
anything is.

berth apps validate does the same with the policies of an app folder.`,
		Example: "  berth policies check policies/\n  berth policies check guardrails/no-privileged.yaml -o json",
		Args:    command.Exactly("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := engine(c)
			if err != nil {
				return err
			}
			var checked Checked
			if err := Ask(cmd.Context(), path, &checked, arguments("check", v0, args)...); err != nil {
				return err
			}
			if err := command.PrintList(c, checked.Findings, findingsView()); err != nil {
				return err
			}
			output.Printf(c.Err, "%s, %s\n", output.Plural(checked.Files, "file"), output.Plural(len(checked.Findings), "problem"))
			if len(checked.Findings) > 0 {
				return command.Outcome(command.ExitFailed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&v0, "rego-v0", false, "read Rego as OPA before 1.0 did")
	return cmd
}

func testCommand(c *command.CLI) *cobra.Command {
	v0, failed := false, false
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run the tests that stand next to policies",
		Long: `Runs all tests in a folder and below, without the control plane, a cluster or the network:

  kyverno-test.yaml   Kyverno's own test files (kyverno test)
  test_ in *.rego     Rego's own test rules (opa test)

A test that only a cluster, a registry or the network could answer is unknown, and is no
failure. The exit code is 1 if a test fails or cannot be run.`,
		Example: "  berth policies test policies/\n  berth policies test . --failed",
		Args:    command.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := engine(c)
			if err != nil {
				return err
			}
			return runTests(cmd.Context(), c, asked{engine: path, dirs: args, v0: v0, failed: failed})
		},
	}
	cmd.Flags().BoolVar(&v0, "rego-v0", false, "read Rego as OPA before 1.0 did")
	cmd.Flags().BoolVar(&failed, "failed", false, "leave out tests that passed")
	return cmd
}

// asked is how tests are to be run and shown.
type asked struct {
	engine     string
	dirs       []string
	v0, failed bool
}

func runTests(ctx context.Context, c *command.CLI, a asked) error {
	var tested Tested
	if err := Ask(ctx, a.engine, &tested, arguments("test", a.v0, a.dirs)...); err != nil {
		return err
	}
	shown := []Test{}
	for _, t := range tested.Tests {
		if !a.failed || t.Result != "pass" {
			shown = append(shown, t)
		}
	}
	if err := command.PrintList(c, shown, testsView()); err != nil {
		return err
	}
	output.Printf(c.Err, "%d passed, %d failed, %s, %d unknown\n", tested.Passed, tested.Failed, output.Plural(tested.Errors, "error"), tested.Unknown)
	if tested.Failed+tested.Errors > 0 {
		return command.Outcome(command.ExitFailed)
	}
	if len(tested.Tests) == 0 {
		return advised{errors.New("there are no tests here"), "write a kyverno-test.yaml, or rules that begin with test_ in a .rego file; see docs/guides/policies.md"}
	}
	return nil
}

func arguments(mode string, v0 bool, paths []string) []string {
	args := []string{mode, "--output", "json"}
	if v0 {
		args = append(args, "--rego-v0")
	}
	return append(args, paths...)
}

func findingsView() output.View[Finding] {
	return output.View[Finding]{
		Name: lineOf,
		Columns: []output.Column[Finding]{
			{Head: "PLACE", Cell: lineOf},
			{Head: "PROBLEM", Shrinks: true, Cell: func(f Finding) string { return output.OneLine(f.Message) }},
		},
	}
}

func lineOf(f Finding) string { return f.File + ":" + strconv.Itoa(f.Line) }

func testsView() output.View[Test] {
	subject := func(t Test) string {
		if t.Rule == "" || t.Policy == "" {
			return t.Policy + t.Rule
		}
		return t.Policy + "/" + t.Rule
	}
	where := func(t Test) string {
		if t.Line == 0 {
			return t.File
		}
		return lineOf(Finding{File: t.File, Line: t.Line})
	}
	return output.View[Test]{
		Name: func(t Test) string { return where(t) + " " + subject(t) },
		Columns: []output.Column[Test]{
			{Head: "RESULT", Cell: func(t Test) string { return t.Result }},
			{Head: "RULE", Cell: subject},
			{Head: "RESOURCE", Yields: true, Cell: func(t Test) string { return t.Resource }},
			{Head: "FILE", Cell: where},
			{Head: "MESSAGE", Shrinks: true, Cell: func(t Test) string { return output.OneLine(t.Message) }},
		},
	}
}
