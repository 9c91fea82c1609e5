package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/logview"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/redact"
	"github.com/berth-dev/berth/pkg/visible"
)

// maxScript bounds a script, as the API does.
const maxScript = 256 << 10

// scriptFlags say how a script is to be run.
type scriptFlags struct {
	how       watching
	script    ctlapi.AdHocScript
	name      string
	env       []string
	sensitive []string
	killAfter time.Duration
	log       bool
}

func (c *cli) actionsRunScript() *cobra.Command {
	f := &scriptFlags{}
	cmd := &cobra.Command{
		Use: "run-script INSTALL FILE", Short: "Run a script that is part of no release, once", Args: command.Exactly("INSTALL", "FILE"),
		Long: `Sends a script to the install's runner. It is a change like any other: the plan shows all of
its text and the names of its variables, somebody decides on it, and the runner runs exactly
what was shown. FILE is a file, or - for stdin.

While it runs nothing else changes the install; with --component, nothing else changes that
component. In an install without a sandbox and without --component it holds nothing.
Text and values of --env are templates, as those of actions are: {{ .nuon.install.id }}.

Anybody who may see the install can read the script, so it must hold no secret. Values of
--sensitive-env are sealed before they are stored and are shown nowhere. berth reads them
from its own environment or from a file, because everybody on your machine can see arguments.`,
	}
	cmd.Flags().StringArrayVarP(&f.env, "env", "e", nil, "an environment variable, NAME=VALUE; not for secrets")
	cmd.Flags().StringArrayVar(&f.sensitive, "sensitive-env", nil, "a secret variable: NAME takes the value from berth's own environment, NAME=@FILE from a file")
	cmd.Flags().StringVar(&f.name, "name", "", "what to call it (default: the name of the file)")
	cmd.Flags().DurationVar(&f.killAfter, "kill-after", 5*time.Minute, "stop the script after this time; at most 1h")
	cmd.Flags().BoolVar(&f.script.Kubeconfig, "kubeconfig", false, "give it access to the install's cluster")
	cmd.Flags().StringVar(&f.script.KubernetesContext, "kubernetes-context", "", "give it access to this cluster of the app instead")
	cmd.Flags().StringVar(&f.script.Image, "image", "", "run it in this image, by digest, where engines run in pods")
	cmd.Flags().StringVar(&f.script.Component, "component", "", "hold only this component while it runs")
	cmd.Flags().BoolVar(&f.log, "log", false, "print its log once it has ended (implies --watch)")
	f.how.flags(cmd)
	f.how.planFlag(cmd, "run")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := f.read(c, args[1]); err != nil {
			return err
		}
		return c.runScript(ctx, client, args[0], f)
	})
	return cmd
}

// runScript starts the script and, when it was followed to its end, shows what it gave.
func (c *cli) runScript(ctx context.Context, client *api.Client, install string, f *scriptFlags) error {
	f.how.watch = f.how.watch || f.how.plan || f.log
	w, err := c.begin(ctx, client, launch{install: install, request: ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindRunScript, Script: &f.script}, how: f.how})
	if err != nil {
		return err
	}
	ended := c.started(ctx, client, w, f.how)
	if f.how.plan || !f.how.watch && !f.how.autoApprove {
		return ended
	}
	run, err := ranScript(ctx, client, w)
	if err != nil || run == nil {
		return errors.Join(ended, err)
	}
	if f.log {
		logs, err := client.Logs(ctx)
		if err != nil {
			return errors.Join(ended, err)
		}
		if err := (&logview.View{Client: client, Logs: logs, Out: c.Err, Err: c.Err}).Show(ctx, run.ID); err != nil {
			return errors.Join(ended, err)
		}
	}
	if !c.ForPrograms() {
		c.tellOutputs(*run)
	}
	return ended
}

// ranScript is the run that a workflow ended with; nil when there was none.
func ranScript(ctx context.Context, client *api.Client, w *ctlapi.Workflow) (*ctlapi.ActionRun, error) {
	runs, err := client.Runs(ctx, recentRuns, ctlapi.ListActionRunsParams{Install: &w.Install.ID})
	if err != nil {
		return nil, fmt.Errorf("read what the script gave: %w", err)
	}
	for _, run := range runs {
		if api.Value(run.WorkflowID) == w.ID && run.FinishedAt != nil {
			return &run, nil
		}
	}
	return nil, nil //nolint:nilnil // it did not run, or not yet to its end
}

// recentRuns is among how many of the newest runs that of a script is looked for.
const recentRuns = 50

// tellOutputs prints the outputs of a run, and where the rest of it is.
func (c *cli) tellOutputs(run ctlapi.ActionRun) {
	for _, line := range outputLines(run) {
		output.Println(c.Out, line)
	}
	if n := api.Value(run.MetricsKept); n > 0 {
		output.Printf(c.Err, "numbers written: %d; see berth actions show %s\n", n, run.ID)
	}
	if left := api.Value(run.MetricsError); left != "" {
		output.Printf(c.Err, "warning: numbers were left out: %s\n", left)
	}
	if run.StartedAt != nil && run.FinishedAt != nil {
		output.Printf(c.Err, "run %s took %s; its log: berth logs %s\n", run.ID, follow.Duration(run.FinishedAt.Sub(*run.StartedAt)), run.ID)
	}
}

// outputLines are NAME=VALUE lines of the outputs of a run, values that are no text as
// JSON.
func outputLines(run ctlapi.ActionRun) (lines []string) {
	var steps map[string]map[string]any
	if json.Unmarshal(run.Outputs, &steps) != nil {
		return nil
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		for _, name := range slices.Sorted(maps.Keys(steps[step])) {
			value, isText := steps[step][name].(string)
			if !isText {
				raw, _ := json.Marshal(steps[step][name])
				value = string(raw)
			}
			lines = append(lines, visible.Row(name)+"="+visible.Row(value))
		}
	}
	return lines
}

// read completes the script from its file and the flags.
func (f *scriptFlags) read(c *cli, file string) error {
	text, err := c.readScript(file)
	if err != nil {
		return err
	}
	f.script.Text = text
	if f.name == "" {
		f.name = nameOfScript(file)
	}
	f.script.Name = &f.name
	if f.killAfter < time.Second || f.killAfter > time.Hour {
		return usage.Errorf("--kill-after is %s; it can be from 1s to 1h", f.killAfter)
	}
	f.script.TimeoutSeconds = int(f.killAfter / time.Second)
	env, err := usage.Pairs[map[string]string]("--env", f.env)
	if err != nil {
		return err
	}
	f.script.Env = api.Value(env)
	if f.script.SensitiveEnv, err = c.sensitiveEnv(f.sensitive); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.script.SensitiveEnv)) {
		if len(f.script.SensitiveEnv[name]) < redact.MinLen {
			output.Printf(c.Err, "warning: Berth does not redact secrets shorter than %d bytes from logs: %s\n", redact.MinLen, name)
		}
	}
	return nil
}

func (c *cli) readScript(file string) (string, error) {
	in := c.In
	if file != "-" {
		opened, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return "", usage.Errorf("there is no file %s", file)
		}
		if err != nil {
			return "", err
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, maxScript+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the script: %w", err)
	case len(text) > maxScript:
		return "", usage.Errorf("the script is larger than %d KiB; have it fetch what else it needs", maxScript>>10)
	case strings.TrimSpace(string(text)) == "":
		return "", usage.Errorf("the script is empty")
	}
	return string(text), nil
}

// notInName is what the name of a script cannot have.
var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func nameOfScript(file string) string {
	const longest = 64 // as the API has it
	if file == "-" {
		return "stdin"
	}
	base := filepath.Base(file)
	name := strings.TrimLeft(notInName.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "-"), "._-")
	if name == "" {
		return "script"
	}
	return name[:min(len(name), longest)]
}

// sensitiveEnv reads values that are no arguments.
func (c *cli) sensitiveEnv(given []string) (map[string]string, error) {
	values := map[string]string{}
	for _, entry := range given {
		name, from, isFile := strings.Cut(entry, "=")
		switch file, at := strings.CutPrefix(from, "@"); {
		case name == "":
			return nil, usage.Errorf("--sensitive-env needs a name")
		case !isFile:
			if values[name] = c.Getenv(name); values[name] == "" {
				return nil, usage.Errorf("--sensitive-env %s: berth has no such variable in its environment; set it, or give %s=@FILE", name, name)
			}
		case !at:
			return nil, usage.Errorf("a secret value cannot be an argument, where other people can see it: give --sensitive-env %s to take it from berth's environment, or %s=@FILE", name, name)
		default:
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("--sensitive-env %s: %w", name, err)
			}
			values[name] = strings.TrimRight(string(raw), "\r\n")
		}
	}
	return values, nil
}
