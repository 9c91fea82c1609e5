package orders

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
)

// about is what a plan is of: the sandbox, a component or an action.
type about struct {
	sandbox   bool
	kind      jobspec.Kind
	component string // or the action's name
}

// looksAt says which kinds of jobs bring documents that a policy of a type looks at.
var looksAt = map[policy.Type][]jobspec.Kind{
	policy.TypeContainerImage:     {jobspec.KindContainerImage, jobspec.KindDockerBuild},
	policy.TypeHelmChart:          {jobspec.KindHelmChart},
	policy.TypeHelmJob:            {jobspec.KindHelmChart},
	policy.TypeKubernetesManifest: {jobspec.KindKubernetesManifest},
	policy.TypeKubernetesCluster:  {jobspec.KindHelmChart, jobspec.KindKubernetesManifest},
	policy.TypeTerraformModule:    {jobspec.KindTerraformModule},
	policy.TypeTerraformJob:       {jobspec.KindTerraformModule},
	policy.TypeActionJob:          {jobspec.KindAction},
}

// ActionPolicies are the policies of an app that look at the scripts of an action.
func ActionPolicies(app *appconfig.App, action string) []policy.Rules {
	return policiesFor(app, about{kind: jobspec.KindAction, component: action})
}

// policiesFor are the policies of an app that look at what a plan is of. An order carries
// no others.
func policiesFor(app *appconfig.App, of about) []policy.Rules {
	if app == nil {
		return nil
	}
	var out []policy.Rules
	used := map[string]bool{}
	for i, p := range app.Policies {
		name := cmp.Or(p.Name, fmt.Sprintf("policy %d", i+1))
		if used[name] { // verdicts are told apart by it
			name = fmt.Sprintf("%s (%d)", name, i+1)
		}
		used[name] = true
		if looks(p, of) {
			out = append(out, policy.Rules{
				Name: name, Language: policy.Language(p.Engine), Text: p.Contents.Contents, File: p.At.File, Type: policy.Type(p.Type), Components: p.Components,
			})
		}
	}
	return out
}

func looks(p appconfig.Policy, of about) bool {
	t := policy.Type(p.Type)
	if of.sandbox {
		return t == policy.TypeSandbox && (len(p.Components) == 0 || slices.Contains(p.Components, appconfig.AllComponents))
	}
	named := len(p.Components) == 0 || slices.Contains(p.Components, appconfig.AllComponents) || slices.Contains(p.Components, of.component)
	return named && slices.Contains(looksAt[t], of.kind)
}
