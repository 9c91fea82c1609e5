package interpolate

import "time"

// Parts is what the tree is made of. Each part is fetched on its own; a zero
// part is "not populated yet", and reading its outputs is an error.
type Parts struct {
	Install      Install
	Org          Named
	App          App
	Inputs       map[string]any // nil: not populated
	Stack        Stack
	Sandbox      Sandbox
	Components   map[string]Component // by name
	Actions      map[string]Action    // by name; the last run of each
	Secrets      map[string]Secret    // by name
	Runner       Runner
	Domain       Domain
	CloudAccount map[string]any // "aws", "azure" or "gcp" → region and the like
}

type (
	// Install names the install.
	Install struct{ ID, Name string }
	// Named is the org.
	Named struct{ ID, Name, Status string }
	// App is the app with its variables, texts or sealed leaves.
	App struct {
		ID, Name, Status string
		Variables        map[string]any
	}
	// Stack is what the customer applied.
	Stack struct {
		Populated                                                 bool
		Status, QuickLinkURL, TemplateURL, TemplateJSON, Checksum string
		Outputs                                                   map[string]any
	}
	// Sandbox is the base infrastructure.
	Sandbox struct {
		Populated             bool
		Status, Type, Version string
		Outputs               map[string]any
		RecentRuns            []any
	}
	// Component is a component of this install.
	Component struct {
		Populated                                        bool
		VarName                                          string // another name in templates, may be ""
		Status, BuildID, ComponentID, InstallComponentID string
		Outputs                                          map[string]any
	}
	// Action is the last run of an action; Steps are the outputs by step.
	Action struct {
		Populated  bool
		Status, ID string
		Outputs    map[string]any
		Steps      map[string]map[string]any
		UpdatedAt  time.Time
	}
	// Secret is what may be known of a secret. Its value is with the customer, whose
	// runner adds it and the length to the tree of a job: Value is nil here, but for
	// one that is made up.
	Secret struct {
		ARN, KubernetesNamespace, KubernetesName, KubernetesKey string
		Timestamp                                               time.Time
		Length                                                  int
		Exists                                                  bool
		Version                                                 int
		Value                                                   any
	}
	// Runner is the install's runner.
	Runner struct {
		Populated           bool
		ID, GroupID, Status string
	}
	// Domain holds the delegated domains.
	Domain struct{ Public, Internal string }
)

// NewTree returns what stands below .nuon: plain maps, lists and scalars that
// can be stored as JSON. Aliases are added by NewState, so nothing is stored
// (or sealed) twice.
func NewTree(p Parts) map[string]any {
	return map[string]any{
		"id":   p.Install.ID,
		"name": p.Install.Name,
		"org":  map[string]any{"populated": p.Org.ID != "", "id": p.Org.ID, "name": p.Org.Name, "status": p.Org.Status},
		"app": map[string]any{"populated": p.App.ID != "", "id": p.App.ID, "name": p.App.Name, "status": p.App.Status,
			"variables": tree(p.App.Variables)},
		"inputs": map[string]any{"populated": p.Inputs != nil, "inputs": tree(p.Inputs)},
		"install_stack": map[string]any{"populated": p.Stack.Populated, "status": p.Stack.Status,
			"quick_link_url": p.Stack.QuickLinkURL, "template_url": p.Stack.TemplateURL,
			"template_json": p.Stack.TemplateJSON, "checksum": p.Stack.Checksum, "outputs": tree(p.Stack.Outputs)},
		"sandbox": map[string]any{"populated": p.Sandbox.Populated, "status": p.Sandbox.Status, "type": p.Sandbox.Type,
			"version": p.Sandbox.Version, "outputs": tree(p.Sandbox.Outputs), "recent_runs": list(p.Sandbox.RecentRuns)},
		"components": components(p.Components),
		"actions":    map[string]any{"populated": len(p.Actions) > 0, "workflows": actions(p.Actions)},
		"secrets":    secrets(p.Secrets),
		"runner": map[string]any{"populated": p.Runner.Populated, "id": p.Runner.ID, "runner_group_id": p.Runner.GroupID,
			"status": p.Runner.Status},
		"domain":        map[string]any{"public_domain": p.Domain.Public, "internal_domain": p.Domain.Internal},
		"cloud_account": tree(p.CloudAccount),
	}
}

func components(all map[string]Component) map[string]any {
	out := map[string]any{}
	for name, c := range all {
		out[name] = map[string]any{"populated": c.Populated, "name": name, "var_name": c.VarName, "status": c.Status,
			"build_id": c.BuildID, "component_id": c.ComponentID, "install_component_id": c.InstallComponentID,
			"outputs": tree(c.Outputs)}
	}
	return out
}

func actions(all map[string]Action) map[string]any {
	out := map[string]any{}
	for name, a := range all {
		outputs := tree(a.Outputs)
		steps := map[string]any{}
		for step, values := range a.Steps {
			steps[step] = tree(values)
		}
		outputs["steps"] = steps
		out[name] = map[string]any{"populated": a.Populated, "status": a.Status, "id": a.ID, "outputs": outputs,
			"updated_at": timestamp(a.UpdatedAt)}
	}
	return out
}

func secrets(all map[string]Secret) map[string]any {
	out := map[string]any{}
	for name, s := range all {
		one := map[string]any{"name": name, "arn": s.ARN, "kubernetes_namespace": s.KubernetesNamespace,
			"kubernetes_name": s.KubernetesName, "kubernetes_key": s.KubernetesKey,
			"timestamp": timestamp(s.Timestamp), "length": s.Length, "exists": s.Exists, "version": s.Version}
		if s.Value != nil {
			one["value"] = s.Value
		}
		out[name] = one
	}
	return out
}

func tree(values any) map[string]any {
	copied, _ := normalise(values).(map[string]any)
	if copied == nil {
		copied = map[string]any{}
	}
	return copied
}

func list(values []any) []any {
	if values == nil {
		return []any{}
	}
	return values
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
