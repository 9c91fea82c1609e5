package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// rulesBudget is how much longer a deploy may take that is held against policies.
const rulesBudget = 1.1

// policies is how many an app has that is held against some, half in each language.
const policies = 20

// held is a line of the table: deploys of the same components, which take turns.
type held struct {
	n           int
	bare, ruled figures
}

// ratio is how much longer a deploy takes that is held against policies.
func (h *held) ratio() float64 {
	return float64(h.ruled.percentile(50)) / float64(h.bare.percentile(50))
}

// runRules measures what policies cost: Terraform modules, one line changed in each, in an
// app without policies and in one with some.
func runRules(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	fmt.Fprintln(progress, "starting Berth")
	s, err := startSystem(ctx, opts.bin)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if err != nil {
		return err
	}
	c := &cluster{system: s, name: "berth-bench", progress: progress}
	if err := c.open(ctx); err != nil {
		return err
	}
	defer c.store.Close()
	before := load()
	var results []*held
	for _, n := range opts.components {
		got, err := c.measureRules(ctx, n, opts.rounds)
		if err != nil {
			return fmt.Errorf("%d components: %w", n, err)
		}
		results = append(results, got)
	}
	fmt.Fprintf(out, "\nPolicies. %d CPUs, load %s before and %s after; %s/%s.\n\n", runtime.NumCPU(), before, load(), runtime.GOOS, runtime.GOARCH)
	if err := rulesTable(out, results); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nBudget: a deploy with %d policies takes ≤ %.1f × one without.\n", policies, rulesBudget)
	return err
}

// measureRules makes two installs of n components, and deploys to them by turns.
func (c *cluster) measureRules(ctx context.Context, n, rounds int) (*held, error) {
	ways := make([]*berthWay, 2)
	for i, name := range []string{"bare", "ruled"} {
		folder := filepath.Join(c.system.dir, fmt.Sprintf("%s-%d", name, n))
		if err := writeApp(folder, moduleKinds[0], n, name); err != nil {
			return nil, err
		}
		if name == "ruled" {
			if err := writePolicies(folder, policies); err != nil {
				return nil, err
			}
		}
		install := fmt.Sprintf("%s-%s-%d", c.name, name, n)
		if err := c.system.berth(ctx, "sync", folder, "--app", install, "--wait"); err != nil {
			return nil, err
		}
		if err := c.system.berth(ctx, "installs", "create", install, "--app", install, "--approve-all", "--watch"); err != nil {
			return nil, err
		}
		ways[i] = &berthWay{cluster: c, kind: moduleKinds[0], install: install, n: n, spent: map[bool]*spent{true: newSpent()}}
	}
	result := &held{n: n}
	for round := range rounds {
		fmt.Fprintf(c.progress, "%d components, round %d of %d\n", n, round+1, rounds)
		for turn := range ways {
			// Another one begins each round.
			which := (round + turn) % len(ways)
			way, into := ways[which], []*figures{&result.bare, &result.ruled}[which]
			if err := way.prepare(ctx, c.nextValue()); err != nil {
				return nil, err
			}
			took, err := way.timed(ctx)
			if err != nil {
				return nil, err
			}
			into.add(took)
		}
	}
	return result, nil
}

// timed deploys, and answers how long the workflow took.
func (b *berthWay) timed(ctx context.Context) (time.Duration, error) {
	if _, _, err := b.deploy(ctx); err != nil {
		return 0, err
	}
	if err := b.verify(ctx, true); err != nil {
		return 0, err
	}
	return b.last.FinishedAt.Sub(b.last.CreatedAt), nil
}

// writePolicies gives an app policies that look at each plan and let it pass: half in
// Kyverno's language, half in Rego.
func writePolicies(folder string, n int) error {
	dir := filepath.Join(folder, "policies")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for i := range n {
		name, ext, engine, rules := fmt.Sprintf("rule-%02d", i+1), ".yaml", "kyverno", fmt.Sprintf(validating, i+1, i+1)
		if i%2 == 1 {
			ext, engine, rules = ".rego", "opa", fmt.Sprintf(rego, i+1)
		}
		block := fmt.Sprintf("type = \"terraform_module\"\nengine = %q\ncontents = \"./%s%s\"\n", engine, name, ext)
		for file, text := range map[string]string{name + ext: rules, name + ".toml": block} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// The policies, each with a number that makes it another one.
const (
	validating = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: rule-%02d}
spec:
  evaluation: {mode: JSON}
  validationActions: [Deny]
  matchConditions:
    - {name: plan, expression: has(object.resource_changes)}
  variables:
    - {name: gone, expression: "object.resource_changes.filter(r, 'delete' in r.change.actions && r.type == 'database_%d').map(r, r.address)"}
  validations:
    - {expression: variables.gone.size() == 0, message: the plan removes a database}
`
	rego = `package nuon

deny contains msg if {
	some r in input.plan.resource_changes
	"delete" in r.change.actions
	r.type == "database_%d"
	msg := sprintf("the plan removes %%s", [r.address])
}
`
)

// rulesTable prints one line per number of components; all times are medians.
func rulesTable(w io.Writer, all []*held) error {
	rows := [][]string{{"components", "rounds", "without policies ms", "with policies ms", "ratio", "budget"}}
	for _, h := range all {
		verdict := "missed"
		if h.ratio() <= rulesBudget {
			verdict = "kept"
		}
		rows = append(rows, []string{
			fmt.Sprint(h.n), fmt.Sprint(len(h.bare.took)), milliseconds(h.bare.percentile(50)), milliseconds(h.ruled.percentile(50)), fmt.Sprintf("× %.2f", h.ratio()), verdict,
		})
	}
	return markdown(w, rows, 5)
}
