// Command measure compares the engine with Kyverno's own command: on the same policies and
// documents how long both take, and on a folder of tests whether both say the same. It prints
// a report. dev/scripts/policy.sh compare builds what it needs.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/suite"
)

func main() {
	var m measure
	flag.StringVar(&m.engine, "engine", "", "berth-policy")
	flag.StringVar(&m.kyverno, "kyverno", "", "the command of Kyverno")
	flag.StringVar(&m.tests, "tests", "", "a folder with Kyverno's tests")
	flag.Parse()
	if err := m.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type measure struct{ engine, kyverno, tests string }

func (m measure) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "berth-policy-measure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("| policies | documents | engine, first batch | engine, warm batch | per document, warm | verdicts/s, warm | `kyverno apply` | per check: engine | per check: kyverno | ratio |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for _, set := range []struct {
		name  string
		texts []string
	}{{"10 ValidatingPolicies", validating(10)}, {"10 ClusterPolicies (pattern)", patterns(10)}, {"5 and 5", slices.Concat(validating(5), patterns(5))}} {
		for _, documents := range []int{1, 60} {
			if err := m.speed(ctx, filepath.Join(dir, "x"), set.name, set.texts, documents); err != nil {
				return err
			}
		}
	}
	if m.tests == "" {
		return nil
	}
	return m.agreement(ctx)
}

// validating are policies in CEL that pods and what makes them have to pass.
func validating(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: v%d}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  variables:
  - {name: all, expression: "object.spec.containers + object.spec.?initContainers.orValue([])"}
  validations:
  - message: privileged
    expression: variables.all.all(c, !c.?securityContext.?privileged.orValue(false) && c.image != 'bad:%d')
`, i, i))
	}
	return all
}

func patterns(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: c%d}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      failureAction: Enforce
      message: no such image
      pattern: {spec: {containers: [{image: "!bad:%d"}]}}
`, i, i))
	}
	return all
}

func deployment(n int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%d","namespace":"shop","labels":{"app":"web"}},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","image":"registry.example.com/web:1.%d","ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}],"resources":{"limits":{"memory":"1Gi"}}},{"name":"b","image":"registry.example.com/side:2"}]}}}}`, n, n)
}

const rounds = 9 // of which the median counts

func (m measure) speed(ctx context.Context, dir, name string, texts []string, documents int) error {
	var r policy.Request
	var objects []string
	for i, text := range texts {
		r.Rules = append(r.Rules, policy.Rules{Name: fmt.Sprint(i), Language: policy.Kyverno, Text: text})
	}
	for n := range documents {
		objects = append(objects, deployment(n))
		r.Documents = append(r.Documents, policy.Document{Form: policy.FormObject, Name: fmt.Sprint(n), Operation: policy.Create, Body: json.RawMessage(deployment(n))})
	}
	first, warm, verdicts, err := m.serve(ctx, r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	policies, resources := filepath.Join(dir, "policies.yaml"), filepath.Join(dir, "resources.yaml")
	if err := errors.Join(os.WriteFile(policies, []byte(strings.Join(texts, "---\n")), 0o600), os.WriteFile(resources, []byte(strings.Join(objects, "\n---\n")), 0o600)); err != nil {
		return err
	}
	var took []time.Duration
	for range 3 {
		began := time.Now()
		cmd := exec.CommandContext(ctx, m.kyverno, "apply", policies, "--resource", resources)
		cmd.Env = []string{"HOME=" + dir, "PATH=/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kyverno apply: %w: %s", err, out)
		}
		took = append(took, time.Since(began))
	}
	theirs := median(took)
	each := func(d time.Duration) time.Duration { return d / time.Duration(verdicts) }
	fmt.Printf("| %s | %d | %s | %s | %s | %d | %s | %s | %s | %.0f × |\n", name, documents, round(first), round(warm), round(warm/time.Duration(documents)),
		int(float64(verdicts)/warm.Seconds()), round(theirs), round(each(warm)), round(each(theirs)), float64(theirs)/float64(warm))
	return nil
}

// serve asks a new engine the same several times.
func (m measure) serve(ctx context.Context, r policy.Request) (first, warm time.Duration, verdicts int, err error) {
	cmd := exec.CommandContext(ctx, m.engine, "serve")
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, 0, err
	}
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, 0, err
	}
	var took []time.Duration
	for n := range rounds + 1 {
		if n > 0 {
			began = time.Now()
		}
		if err := policy.WriteFrame(in, r, policy.MaxRequest); err != nil {
			return 0, 0, 0, err
		}
		raw, err := policy.ReadFrame(out, policy.MaxReply)
		if err != nil {
			return 0, 0, 0, err
		}
		reply, err := policy.ReadReply(bytes.NewReader(raw), r)
		if err != nil {
			return 0, 0, 0, err
		}
		for _, v := range reply.Verdicts {
			if v.Result != policy.Pass {
				return 0, 0, 0, fmt.Errorf("a verdict that should pass: %v", v)
			}
		}
		verdicts = len(reply.Verdicts)
		took = append(took, time.Since(began))
	}
	return took[0], median(took[1:]), verdicts, errors.Join(in.Close(), cmd.Wait())
}

func median(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}

// agreement runs Kyverno's tests by both, file by file.
func (m measure) agreement(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, m.engine, "test", "--output", "json", m.tests)
	raw, err := cmd.Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return err
	}
	var report suite.Report
	if err := json.Unmarshal(raw, &report); err != nil {
		return err
	}
	ours := map[string]map[string][]suite.Result{}
	for _, t := range report.Tests {
		if ours[t.File] == nil {
			ours[t.File] = map[string][]suite.Result{}
		}
		key := strings.Join([]string{t.Policy, t.Rule, t.Resource}, " ")
		ours[t.File][key] = append(ours[t.File][key], t.Result)
	}
	same, unknown, different := 0, 0, 0
	for _, file := range slices.Sorted(maps.Keys(ours)) {
		theirs := m.theirs(ctx, file)
		for key, results := range ours[file] {
			for _, result := range results {
				at := slices.Index(theirs[key], result)
				switch {
				case at >= 0:
					theirs[key] = slices.Delete(theirs[key], at, at+1)
					same++
				case result == suite.Unknown:
					unknown++
				case result == suite.Error && len(theirs) == 0:
					same++ // neither can run it
				default:
					different++
					fmt.Printf("\ndifferent: %s: %s: %s, kyverno %v\n", file, key, result, theirs[key])
				}
			}
		}
	}
	fmt.Printf("\n%d test files, %d results: %d the same, %d unknown here and failed there for want of a registry, %d different\n", len(ours), len(report.Tests), same, unknown, different)
	return nil
}

// theirs are the results of Kyverno's command for one file.
func (m measure) theirs(ctx context.Context, file string) map[string][]suite.Result {
	cmd := exec.CommandContext(ctx, m.kyverno, "test", filepath.Dir(file), "--output-format", "json", "--remove-color")
	cmd.Env = []string{"HOME=" + os.TempDir(), "PATH=/usr/bin:/bin"}
	out, _ := cmd.Output() // it fails when a test does
	return suite.ResultsOf(string(out), file)
}
