package terraform

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

// trial is a look at a module of a rehearsal, in a copy of its own and without a
// state.
type trial struct {
	env       map[string]string
	providers map[string]module.Provider
	said      jobspec.Rehearsed
}

// trialInitTimeout bounds the init of a module of a rehearsal: a source that never
// answers must not hold up the report.
const trialInitTimeout = 90 * time.Second

// mockTimeout bounds `terraform test`: what it cannot mock, a provider asks a cloud
// for.
const mockTimeout = 5 * time.Minute

// tryModule decides what becomes of a module: nil as it is, when its providers are
// there and need no cloud; else a stand-in, with the module's plan as far as there
// can be one.
func tryModule(ctx context.Context, j *job.Job, t trial) (*standIn, error) {
	if len(t.providers) == 0 {
		return nil, nil
	}
	w := &workspace{dir: j.Work("trial")}
	if err := os.CopyFS(w.dir, os.DirFS(j.In("artifact"))); err != nil {
		return nil, fmt.Errorf("copy the module: %w", err)
	}
	var err error
	if w.module, err = module.Read(w.dir, isOpenTofu(j)); err != nil {
		return nil, err
	}
	if err := w.keepStateIn(j, "local"); err != nil {
		return nil, err
	}
	w.standIn = &standIn{Rehearsed: t.said} // any version of Terraform will do
	if err := w.findTerraform(ctx, j, quick(withoutVars(t.env))); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(w.dir) }() // work/ goes with the job in any case
	if _, err := anyVersion(w.tree(), w.version); err != nil {
		return nil, err
	}
	w.standIn.How = jobspec.RehearsedNotPlanned
	limited, cancel := context.WithTimeout(ctx, trialInitTimeout)
	defer cancel()
	initErr := w.loudly(j, func() error { return w.tf.run(limited, nil, "init", "-no-color", "-input=false") })
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		w.standIn.Unreachable = sourcesOf(t.providers)
		w.standIn.Why = fmt.Sprintf("terraform init did not end within %s: a source of providers or modules does not answer", trialInitTimeout)
		return w.standIn, nil
	case initErr != nil:
		text := strings.Join(strings.Fields(initErr.Error()), " ")
		modules := modulesNotReached(text, w.module.Calls)
		if len(modules) == 0 {
			w.standIn.Unreachable = unreachable(text, t.providers)
		}
		w.standIn.Why = whyNotReached(w.standIn.Unreachable, modules, initErr)
		w.standIn.detail = initErr.Error()
		return w.standIn, nil
	case len(t.said.Providers) == 0:
		return nil, nil
	}
	plan, err := w.mocked(ctx, j, t)
	if failure, ok := errors.AsType[*job.Failure](err); ok && failure.Reason == jobspec.ReasonNeedsChange {
		return nil, err // of the app, not of the mocks
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		w.standIn.Why = "mocked providers could not plan it: " + strings.Join(strings.Fields(err.Error()), " ")
		return w.standIn, nil
	}
	w.standIn.How, w.standIn.plan = jobspec.RehearsedMocked, plan
	w.standIn.Why = "it needs " + strings.Join(t.said.Providers, ", ") + ", so it was planned with mocked providers and not applied"
	return w.standIn, nil
}

// quick makes an init of a rehearsal give a registry up that does not answer: what
// there is of the app's providers is told in seconds, not in minutes.
func quick(env map[string]string) map[string]string {
	out := map[string]string{"TF_REGISTRY_CLIENT_TIMEOUT": "5", "TF_REGISTRY_DISCOVERY_RETRY": "0"} // seconds; retries
	maps.Copy(out, env)
	return out
}

// unreachable are the providers that init could not get, by its words; all of
// them when it names none.
func unreachable(text string, providers map[string]module.Provider) []string {
	all := sourcesOf(providers)
	named := slices.DeleteFunc(slices.Clone(all), func(source string) bool { return !strings.Contains(text, source) })
	if len(named) == 0 && strings.Contains(text, "provider") {
		return all
	}
	return named
}

// sourcesOf are the sources of providers, sorted, each once.
func sourcesOf(providers map[string]module.Provider) []string {
	var all []string
	for _, p := range providers {
		all = append(all, p.Source)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// moduleErrors are how Terraform begins to say that it cannot get a module, and names
// it; a source in the text is that of a module in a module.
var (
	moduleErrors  = regexp.MustCompile(`(?:Could not download module|Failed to retrieve available versions for module|Unresolvable module|Module not found)`)
	moduleNamed   = regexp.MustCompile(`module "([^"]+)"`)
	sourceOfError = regexp.MustCompile(`source code from "([^"]+)"`)
)

// modulesNotReached are the sources of modules that init could not get.
func modulesNotReached(text string, calls []module.Call) []string {
	if !moduleErrors.MatchString(text) {
		return nil
	}
	var found []string
	for _, m := range moduleNamed.FindAllStringSubmatch(text, -1) {
		for _, call := range calls {
			if call.Name == m[1] && !call.Local() {
				found = append(found, call.Source)
			}
		}
	}
	if len(found) == 0 {
		for _, m := range sourceOfError.FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// whyNotReached says in one line what init could not get; the whole error is a
// detail of the plan.
func whyNotReached(providers, modules []string, err error) string {
	if len(modules) > 0 {
		return plural("module", modules) + " unreachable"
	}
	if len(providers) == 0 {
		return "terraform init failed: " + firstError(err)
	}
	return plural("provider", providers) + " unreachable"
}

func plural(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(names, ", ")
}

// mocked plans the module with mocks in the place of the clouds.
func (w *workspace) mocked(ctx context.Context, j *job.Job, t trial) (*jobspec.PlanSummary, error) {
	in, err := renderInputs(j, w.module, t.env)
	if err != nil {
		return nil, err
	}
	varFiles, err := in.write(j.Work("trial-vars"))
	if err != nil {
		return nil, err
	}
	if err := job.WriteFile(filepath.Join(w.dir, "berth_rehearsal.tftest.hcl"), mocks(t)); err != nil {
		return nil, err
	}
	args := []string{"test", "-json", "-verbose", "-no-color", "-filter=berth_rehearsal.tftest.hcl"}
	for _, path := range varFiles {
		args = append(args, "-var-file="+path)
	}
	ctx, cancel := context.WithTimeout(ctx, mockTimeout)
	defer cancel()
	env, err := toolEnv(j, in.EnvVars)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, j.Env["BERTH_TERRAFORM"], args...)
	cmd.Dir, cmd.WaitDelay = w.dir, interruptGrace
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	// What it says holds values in clear, so it does not go to the log.
	out, runErr := cmd.Output()
	return readTest(out, runErr)
}

// mocks is the test that plans the module.
func mocks(t trial) []byte {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.providers)) {
		p := t.providers[name]
		if slices.Contains(onThisMachine, p.Source) {
			continue
		}
		for _, alias := range append([]string{""}, p.Aliases...) {
			fmt.Fprintf(&b, "mock_provider %q {\n", name)
			if alias != "" {
				fmt.Fprintf(&b, "  alias = %q\n", alias)
			}
			b.WriteString(mockedData[p.Source] + "}\n")
		}
	}
	b.WriteString("run \"plan\" {\n  command = plan\n}\n")
	return []byte(b.String())
}

// mockedData are answers of data sources that modules count on: a mock's own are
// empty lists and texts that are no JSON.
var mockedData = map[string]string{
	"hashicorp/aws": `
  mock_data "aws_availability_zones" {
    defaults = { names = ["us-west-2a", "us-west-2b", "us-west-2c"], zone_ids = ["usw2-az1", "usw2-az2", "usw2-az3"] }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000", arn = "arn:aws:iam::000000000000:role/rehearsal", user_id = "rehearsal" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{\"Version\":\"2012-10-17\",\"Statement\":[]}" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }
  mock_data "aws_region" {
    defaults = { name = "us-west-2", id = "us-west-2" }
  }
`,
	"hashicorp/google": `
  mock_data "google_compute_zones" {
    defaults = { names = ["us-central1-a", "us-central1-b", "us-central1-c"] }
  }
`,
}

// testEvent is a line of `terraform test -json`.
type testEvent struct {
	Type       string          `json:"type"`
	Diagnostic *diagnostic     `json:"diagnostic"`
	Plan       json.RawMessage `json:"test_plan"`
	Run        *struct {
		Status string `json:"status"`
	} `json:"test_run"`
}

// maxTestLine is the longest line of a test that is read: it holds a whole plan.
const maxTestLine = 64 << 20

// readTest reads the plan out of what `terraform test` says.
func readTest(out []byte, runErr error) (*jobspec.PlanSummary, error) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, maxTestLine)
	var plan *tfjson.Plan
	var first string
	for lines.Scan() {
		var e testEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if e.Diagnostic != nil && e.Diagnostic.Severity == "error" && first == "" {
			first = e.Diagnostic.String()
		}
		if len(e.Plan) > 0 {
			plan = &tfjson.Plan{}
			if err := readTestPlan(e.Plan, plan); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case first != "":
		return nil, errors.New(first)
	case runErr != nil:
		return nil, fmt.Errorf("terraform test: %w", runErr)
	case plan == nil:
		return nil, errors.New("terraform test ended without a plan")
	}
	s := summarise(plan, nil)
	s.Text = textOf(s)
	return &s, nil
}

// readTestPlan reads the plan of a test, which is one of `terraform show` without
// its version.
func readTestPlan(raw json.RawMessage, plan *tfjson.Plan) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return err
	}
	if format, ok := keys["plan_format_version"]; ok {
		keys["format_version"] = format
	}
	for _, other := range []string{"plan_format_version", "provider_schemas", "provider_format_version"} {
		delete(keys, other)
	}
	whole, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	return json.Unmarshal(whole, plan)
}

// textOf is a plan in lines: a test shows none that a person could read.
func textOf(s jobspec.PlanSummary) string {
	var b strings.Builder
	for _, o := range s.Objects {
		fmt.Fprintf(&b, "%s %s\n", o.Action, o.Address)
	}
	fmt.Fprintf(&b, "\nPlan: %d to create, %d to update, %d to replace, %d to delete.\n", s.Create, s.Update, s.Replace, s.Delete)
	return b.String()
}
