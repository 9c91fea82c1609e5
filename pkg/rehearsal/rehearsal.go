package rehearsal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// Platform is the cloud that an app is written for.
type Platform string

// The platforms. An app that is written for none of them can be rehearsed too:
// it gets what its templates read.
const (
	AWS   Platform = "aws"
	GCP   Platform = "gcp"
	Azure Platform = "azure"
	None  Platform = "none"
)

// Source says where an output of a rehearsal is from.
type Source string

// The sources, the one that wins first.
const (
	Given    Source = "given"    // a person named it
	Recorded Source = "recorded" // of a real install
	MadeUp   Source = "made_up"
)

// Outputs are what a cloud gives. The zero value is nothing.
type Outputs struct {
	Stack        map[string]any            `json:"stack,omitempty"`
	Sandbox      map[string]any            `json:"sandbox,omitempty"`
	Components   map[string]map[string]any `json:"components,omitempty"` // by the component's name
	CloudAccount map[string]any            `json:"cloud_account,omitempty"`
	Domain       map[string]any            `json:"domain,omitempty"`
}

// Rehearsal is what is kept of one, once and for all.
type Rehearsal struct {
	Platform Platform `json:"platform"`
	Given    Outputs  `json:"given,omitzero"`
	Recorded Outputs  `json:"recorded,omitzero"`
	// NoCluster: what goes to a cluster is rendered and checked, and not applied.
	NoCluster bool `json:"no_cluster,omitempty"`
}

// Origin says where the value at a path of the state tree is from.
type Origin struct {
	Path   string `json:"path"` // "install_stack.outputs.vpc_id"
	Source Source `json:"source"`
	Value  any    `json:"value"`
}

// Result is everything that an install gets in the place of a cloud.
type Result struct {
	Outputs
	Origins []Origin // by path
}

// PlatformOf is the cloud that an app declares in runner.toml or stack.toml.
func PlatformOf(app *appconfig.App) Platform {
	runner, stack := "", ""
	if app.Runner != nil {
		runner = app.Runner.RunnerType
	}
	if app.Stack != nil {
		stack = string(app.Stack.Type)
	}
	for _, declared := range []string{runner, stack} {
		for _, p := range []Platform{AWS, GCP, Azure} {
			if strings.HasPrefix(declared, string(p)) {
				return p
			}
		}
	}
	return None
}

// Complete makes up what is neither given nor recorded: what the platform's stack
// always gives, and what the templates of the app read. Components get outputs when
// they are Terraform modules or Pulumi programs; whether one needs a cloud is for
// the caller to find out.
func Complete(app *appconfig.App, r Rehearsal) Result {
	b := builder{platform: r.Platform, region: regionOf(r), tree: map[string]any{}, source: map[string]Source{}}
	b.put(r.Given, Given)
	b.put(r.Recorded, Recorded)
	for _, path := range always(app, r.Platform) {
		b.makeUp(path)
	}
	for _, path := range reads(app) {
		b.makeUp(path)
	}
	b.fit(app)
	return b.result()
}

// Problems says what is wrong with outputs that somebody gives, each in a
// sentence; none are fine.
func (o Outputs) Problems(app *appconfig.App) []string {
	var problems []string
	for name := range o.Components {
		if app.Component(name) == nil {
			problems = append(problems, fmt.Sprintf("the app has no component %q", name))
		}
	}
	for name := range o.Sandbox {
		if !outputName.MatchString(name) {
			problems = append(problems, fmt.Sprintf("%q cannot be the name of an output of a sandbox", name))
		}
	}
	slices.Sort(problems)
	return problems
}

// regionOf is the region that all made-up values agree on.
func regionOf(r Rehearsal) string {
	for _, o := range []Outputs{r.Given, r.Recorded} {
		for _, key := range []string{"region", "location"} {
			if text, ok := o.Stack[key].(string); ok && text != "" {
				return text
			}
			for _, account := range o.CloudAccount {
				if of, ok := account.(map[string]any); ok {
					if text, ok := of[key].(string); ok && text != "" {
						return text
					}
				}
			}
		}
	}
	return cmp.Or(map[Platform]string{AWS: "us-west-2", GCP: "us-central1", Azure: "eastus"}[r.Platform], "local")
}
