package check

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// NotYet is a part of the format that is read, and that this version does not
// act on.
type NotYet struct {
	// Keys are the parts: a document of the format ("secret"), one of its keys and
	// what is below that ("component.health"), or one value of a key
	// ("action.triggers[].type=pre-reprovision").
	Keys []string
	// When says which uses of the keys have no effect, "" for all of them.
	When string
	// What begins the diagnostic, up to "not supported yet by this version".
	What string
	// WaitsFor is the capability that will act on it.
	WaitsFor string
	Severity place.Severity

	find func(*appconfig.App) []use
}

// use is a place where an app says something that has no effect. value fills the
// %s of What.
type use struct {
	at    place.Place
	value string
}

// NotYets lists every part of the format that this version reads and does not act
// on. Anyone who implements one removes its row.
func NotYets() []NotYet { return slices.Clone(notYets) }

// Capabilities that rows wait for.
const (
	waitsClouds    = "cloud stacks"
	waitsRoles     = "roles and permissions"
	waitsDrift     = "scheduled drift detection"
	waitsHealth    = "health of components by their own probes"
	waitsLabels    = "labels of components and actions"
	waitsCustomer  = "pages for customers"
	waitsDashboard = "the dashboard"
	waitsRepos     = "connections to private repositories"
	waitsBranches  = "branches and rollouts"
	waitsRisk      = "risk of a change"
	waitsAdmission = "admission in clusters"
)

// identityOfRole are the keys of a role that say what it is in a cloud.
var identityOfRole = []string{"policies", "named_policies", "permissions_boundary", "cloud_platform", "enabled_in_stack"}

// rolesOf are the roles of an app that its customers switch, or the others.
func rolesOf(a *appconfig.App, switched bool) []appconfig.Role {
	return slices.DeleteFunc(slices.Concat(a.Permissions, a.BreakGlass), func(r appconfig.Role) bool {
		return switched != (r.Type == appconfig.RoleBreakGlass || r.Type == appconfig.RoleCustom)
	})
}

var notYets = []NotYet{
	// Refused: to go on without it would deploy something else.
	{Keys: []string{"component.type=job", "job"}, What: `component type "job" is`, WaitsFor: "components that run once", Severity: place.Error, find: componentType(appconfig.TypeJob)},

	// Whole documents.
	{Keys: []string{"permissions", "permission.type=provision", "permission.type=maintenance", "permission.type=deprovision"}, What: `"permissions" is`, WaitsFor: waitsRoles,
		find: files(func(a *appconfig.App) []appconfig.Role { return rolesOf(a, false) }, func(r appconfig.Role) place.Place { return r.At })},
	{Keys: []string{"policies.policy[].type=kubernetes_cluster", "policy.type=kubernetes_cluster"}, When: "in the cluster itself: the objects of charts and manifests are held against it when they are planned",
		What: `a policy of type "kubernetes_cluster" in the cluster itself is`, WaitsFor: waitsAdmission, find: policiesOf(appconfig.PolicyKubernetesCluster)},
	// The customer switches the others; no identity stands behind them.
	{Keys: slices.Concat(withPrefix("permission.", identityOfRole), withPrefix("break-glass.role[].", identityOfRole)),
		What: "what a role of the customer's switch may do, and in which cloud, is", WaitsFor: waitsRoles,
		find: files(func(a *appconfig.App) []appconfig.Role { return rolesOf(a, true) }, func(r appconfig.Role) place.Place { return r.At })},
	{Keys: []string{"runbook"}, What: `"runbooks" is`, WaitsFor: "runbooks", find: files(func(a *appconfig.App) []appconfig.Runbook { return a.Runbooks }, func(r appconfig.Runbook) place.Place { return r.At })},
	{Keys: []string{"branch"}, What: `"branches" is`, WaitsFor: waitsBranches, find: files(func(a *appconfig.App) []appconfig.Branch { return a.Branches }, func(b appconfig.Branch) place.Place { return b.At })},
	{Keys: []string{"triggers"}, What: `"triggers" is`, WaitsFor: "events from outside", find: files(func(a *appconfig.App) []appconfig.EventTrigger { return a.EventTriggers }, func(t appconfig.EventTrigger) place.Place { return t.At })},
	{Keys: []string{"installs"}, What: `"installs" is`, WaitsFor: waitsBranches, find: one(func(a *appconfig.App) (place.Place, bool) {
		if a.InstallsRepo == nil {
			return place.Place{}, false
		}
		return place.Place{File: a.InstallsRepo.At.File}, true
	})},
	{Keys: []string{"operation-roles"}, What: `"operation_roles" is`, WaitsFor: waitsRoles, find: one(func(a *appconfig.App) (place.Place, bool) {
		if a.OperationRoles == nil {
			return place.Place{}, false
		}
		return place.Place{File: a.OperationRoles.At.File}, true
	})},
	{Keys: []string{"customer-managed", "metadata.customer_managed"}, What: `"customer_managed" is`, WaitsFor: "packages that customers run alone", find: one(func(a *appconfig.App) (place.Place, bool) {
		return place.Place{File: a.Metadata.At.File}, a.Metadata.CustomerManaged != nil
	})},
	{Keys: []string{"installer"}, What: `"installer" is`, WaitsFor: waitsCustomer, find: one(func(a *appconfig.App) (place.Place, bool) {
		if a.Installer == nil {
			return place.Place{}, false
		}
		return place.Place{File: "installer.toml"}, true
	})},

	// metadata.toml
	{Keys: []string{"metadata.slack_webhook_url"}, What: `key "slack_webhook_url" is`, WaitsFor: "notifications", find: metadata("slack_webhook_url", func(m *appconfig.Metadata) bool { return m.SlackWebhookURL != "" })},
	{Keys: []string{"metadata.label_colors"}, What: `key "label_colors" is`, WaitsFor: waitsDashboard, Severity: place.Note, find: metadata("label_colors", func(m *appconfig.Metadata) bool { return len(m.LabelColors) > 0 })},
	{Keys: []string{"metadata.default_labels"}, What: `key "default_labels" is`, WaitsFor: "labels that an app gives its installs", find: metadata("default_labels", func(m *appconfig.Metadata) bool { return len(m.DefaultLabels) > 0 })},
	{Keys: []string{"metadata.onboarding"}, What: `key "onboarding" is`, WaitsFor: "a gallery of examples", Severity: place.Note, find: metadata("onboarding", func(m *appconfig.Metadata) bool { return m.Onboarding != nil })},

	// runner.toml and stack.toml
	{Keys: []string{"runner.runner_type=aws", "runner.runner_type=azure", "runner.runner_type=gcp", "runner.runner_type=aws-ecs", "runner.runner_type=aws-eks", "runner.runner_type=azure-aks", "runner.runner_type=azure-acs"},
		What: `runner_type %q is`, WaitsFor: waitsClouds, find: func(a *appconfig.App) []use {
			if a.Runner == nil || a.Runner.RunnerType == "" || a.Runner.RunnerType == "local" {
				return nil
			}
			return []use{{a.Runner.At.Below("runner_type"), a.Runner.RunnerType}}
		}},
	{Keys: []string{"runner.env_vars"}, What: `key "env_vars" of the runner is`, WaitsFor: waitsClouds, find: runner("env_vars", func(r *appconfig.Runner) bool { return len(r.EnvVars) > 0 })},
	{Keys: []string{"runner.init_script_url"}, What: `key "init_script_url" is`, WaitsFor: waitsClouds, find: runner("init_script_url", func(r *appconfig.Runner) bool { return r.InitScriptURL != "" })},
	{Keys: []string{"runner.instance_type"}, What: `key "instance_type" is`, WaitsFor: waitsClouds, find: runner("instance_type", func(r *appconfig.Runner) bool { return r.InstanceType != "" })},
	{Keys: []string{"stack.type=aws-cloudformation", "stack.type=azure-bicep", "stack.type=gcp-terraform"},
		What: `stack type %q is`, WaitsFor: waitsClouds, find: func(a *appconfig.App) []use {
			if a.Stack == nil || !a.Stack.InCloud() || a.Runner != nil && a.Stack.At == a.Runner.At {
				return nil // or the one of Azure, which no file names: the runner's row says so
			}
			return []use{{a.Stack.At.Below("type"), string(a.Stack.Type)}}
		}},
	{Keys: []string{"stack.name", "stack.description"}, What: `the text of the stack, in "name" and "description", is`, WaitsFor: waitsClouds, Severity: place.Note, find: textOfStack},
	{Keys: []string{"stack.vpc_nested_template_url"}, What: `key "vpc_nested_template_url" is`, WaitsFor: waitsClouds, find: stack("vpc_nested_template_url", func(s *appconfig.Stack) bool { return s.VPCNestedTemplateURL != "" })},
	{Keys: []string{"stack.runner_nested_template_url"}, What: `key "runner_nested_template_url" is`, WaitsFor: waitsClouds, find: stack("runner_nested_template_url", func(s *appconfig.Stack) bool { return s.RunnerNestedTemplateURL != "" })},
	{Keys: []string{"stack.custom_nested_stacks"}, What: `key "custom_nested_stacks" is`, WaitsFor: waitsClouds, find: stack("custom_nested_stacks", func(s *appconfig.Stack) bool { return len(s.CustomNestedStacks) > 0 })},

	// inputs
	{Keys: []string{"input.internal"}, What: `key "internal" is`, WaitsFor: waitsCustomer, find: inputs("internal", func(in *appconfig.Input) bool { return in.Internal })},
	{Keys: []string{"input.user_configurable"}, What: `key "user_configurable" is`, WaitsFor: waitsCustomer, find: inputs("user_configurable", func(in *appconfig.Input) bool { return in.UserConfigurable })},
	{Keys: []string{"input-group.display_name", "input-group.description"}, What: "a heading over inputs is", WaitsFor: waitsDashboard, Severity: place.Note, find: func(a *appconfig.App) (uses []use) {
		for _, g := range a.InputGroups {
			uses = append(uses, use{at: g.At.Below("display_name")})
		}
		return uses
	}},

	// sandbox.toml
	{Keys: []string{"sandbox.drift_schedule"}, When: "of a sandbox of type pulumi", What: `key "drift_schedule", of a sandbox of type pulumi, is`, WaitsFor: waitsDrift,
		find: sandbox("drift_schedule", func(s *appconfig.Sandbox) bool { return s.DriftSchedule != "" && s.Type == appconfig.SandboxTypePulumi })},
	{Keys: []string{"sandbox.berth.drift"}, When: "of a sandbox of type pulumi", What: `key "drift", of a sandbox of type pulumi, is`, WaitsFor: waitsDrift,
		find: sandbox("berth.drift", func(s *appconfig.Sandbox) bool {
			return s.Berth != nil && s.Berth.Drift != nil && s.Type == appconfig.SandboxTypePulumi
		})},
	{Keys: []string{"sandbox.operation_roles"}, What: `key "operation_roles" is`, WaitsFor: waitsRoles, find: sandbox("operation_roles", func(s *appconfig.Sandbox) bool { return len(s.OperationRoles) > 0 })},
	{Keys: []string{"sandbox.connected_repo"}, When: "a repository that cannot be read without credentials", What: `key "connected_repo", read without the org's connection, is`, WaitsFor: waitsRepos,
		find: sandbox("connected_repo", func(s *appconfig.Sandbox) bool { return s.ConnectedRepo != nil })},
	{Keys: []string{"sandbox.berth.guardrails"}, What: `key "guardrails" is`, WaitsFor: waitsRisk, find: sandbox("berth.guardrails", func(s *appconfig.Sandbox) bool { return s.Berth != nil && len(s.Berth.Guardrails) > 0 })},

	// components
	{Keys: []string{"component.labels"}, What: `key "labels" of a component is`, WaitsFor: waitsLabels, find: components("labels", func(c *appconfig.Component) bool { return len(c.Labels) > 0 })},
	{Keys: []string{"component.drift_schedule"}, When: "of a component that is no chart, manifest or Terraform module", What: `key "drift_schedule", of a component that is no chart, manifest or Terraform module, is`, WaitsFor: waitsDrift,
		find: components("drift_schedule", func(c *appconfig.Component) bool { return c.DriftSchedule != "" && !drifts(c) })},
	{Keys: []string{"component.berth.drift"}, When: "of a component that is no chart, manifest or Terraform module", What: `key "drift", of a component that is no chart, manifest or Terraform module, is`, WaitsFor: waitsDrift,
		find: components("berth.drift", func(c *appconfig.Component) bool { return c.Berth != nil && c.Berth.Drift != nil && !drifts(c) })},
	{Keys: []string{"component.health.probes", "component.components.*.health.probes"}, When: "of a type other than http, tcp and exec; of type exec, where the component is neither a chart nor a manifest", What: `a probe of a type other than http, tcp and exec is`, WaitsFor: waitsHealth,
		find: components("health.probes", func(c *appconfig.Component) bool { return c.Health.HasOtherProbes() })},
	{Keys: []string{"component.operation_roles"}, What: `key "operation_roles" is`, WaitsFor: waitsRoles, find: components("operation_roles", func(c *appconfig.Component) bool { return len(c.OperationRoles) > 0 })},
	{Keys: []string{"component.connected_repo"}, When: "a repository that cannot be read without credentials", What: `key "connected_repo", read without the org's connection, is`, WaitsFor: waitsRepos,
		find: components("connected_repo", func(c *appconfig.Component) bool { return c.ConnectedRepo != nil })},
	{Keys: []string{"component.berth.guardrails"}, What: `key "guardrails" is`, WaitsFor: waitsRisk, find: components("berth.guardrails", func(c *appconfig.Component) bool { return c.Berth != nil && len(c.Berth.Guardrails) > 0 })},

	// actions
	{Keys: []string{"action.role"}, What: `key "role" of an action is`, WaitsFor: waitsRoles, find: actions("role", func(a *appconfig.Action) bool { return a.Role != "" })},
	{Keys: []string{"action.break_glass_role"}, When: "the identity that the action runs with: the runner's own, while the customer has the role switched on", What: `the identity behind "break_glass_role" is`, WaitsFor: waitsRoles,
		find: actions("break_glass_role", func(a *appconfig.Action) bool { return a.BreakGlassRole != "" })},
	{Keys: []string{"action.labels"}, When: `all but type = "health-check" and is_health_check`, What: `a label of an action that makes it no health check is`, WaitsFor: waitsLabels, find: actions("labels", (*appconfig.Action).OtherLabels)},
	{Keys: []string{"action.steps[].connected_repo"}, When: "a repository that cannot be read without credentials", What: `key "connected_repo" of a step, read without the org's connection, is`, WaitsFor: waitsRepos,
		find: steps("connected_repo", func(s *appconfig.Step) bool { return s.ConnectedRepo != nil })},
	{Keys: []string{"action.berth.guardrails"}, What: `key "guardrails" is`, WaitsFor: waitsRisk, find: actions("berth.guardrails", func(a *appconfig.Action) bool { return a.Berth != nil && len(a.Berth.Guardrails) > 0 })},

	// installs
	{Keys: []string{"install.aws_account"}, What: `key "aws_account" is`, WaitsFor: waitsClouds, find: installs("aws_account", func(in *appconfig.InstallConfig) bool { return in.AWSAccount != nil })},
	{Keys: []string{"install.azure_account"}, What: `key "azure_account" is`, WaitsFor: waitsClouds, find: installs("azure_account", func(in *appconfig.InstallConfig) bool { return in.AzureAccount != nil })},
	{Keys: []string{"install.gcp_account"}, What: `key "gcp_account" is`, WaitsFor: waitsClouds, find: installs("gcp_account", func(in *appconfig.InstallConfig) bool { return in.GCPAccount != nil })},
	{Keys: []string{"install.stack_overrides"}, What: `key "stack_overrides" is`, WaitsFor: waitsClouds, find: installs("stack_overrides", func(in *appconfig.InstallConfig) bool { return in.StackOverrides != nil })},
}

func withPrefix(prefix string, names []string) (keys []string) {
	for _, name := range names {
		keys = append(keys, prefix+name)
	}
	return keys
}

// The functions below find where an app uses a key.

type finder = func(*appconfig.App) []use

func one(at func(*appconfig.App) (place.Place, bool)) finder {
	return func(a *appconfig.App) []use {
		if where, found := at(a); found {
			return []use{{at: where}}
		}
		return nil
	}
}

// files finds every file that holds one of a list, each once.
func files[T any](list func(*appconfig.App) []T, at func(T) place.Place) finder {
	return func(a *appconfig.App) (uses []use) {
		for _, item := range list(a) {
			u := use{at: place.Place{File: at(item).File}}
			if !slices.Contains(uses, u) {
				uses = append(uses, u)
			}
		}
		return uses
	}
}

// policiesOf finds the policies of a type.
func policiesOf(t appconfig.PolicyType) finder {
	return files(func(a *appconfig.App) (of []appconfig.Policy) {
		for _, p := range a.Policies {
			if p.Type == t {
				of = append(of, p)
			}
		}
		return of
	}, func(p appconfig.Policy) place.Place { return p.At })
}

func metadata(key string, used func(*appconfig.Metadata) bool) finder {
	return func(a *appconfig.App) []use { return found(used(&a.Metadata), a.Metadata.At.Below(key)) }
}

func runner(key string, used func(*appconfig.Runner) bool) finder {
	return func(a *appconfig.App) []use {
		if a.Runner == nil {
			return nil
		}
		return found(used(a.Runner), a.Runner.At.Below(key))
	}
}

func stack(key string, used func(*appconfig.Stack) bool) finder {
	return func(a *appconfig.App) []use {
		if a.Stack == nil {
			return nil
		}
		return found(used(a.Stack), a.Stack.At.Below(key))
	}
}

// textOfStack finds text that nobody reads. A cloud stack has no effect at all, and
// the row of its type says so.
func textOfStack(a *appconfig.App) []use {
	s := a.Stack
	switch {
	case s == nil || s.InCloud():
		return nil
	case s.Name != "":
		return []use{{at: s.At.Below("name")}}
	}
	return found(s.Description != "", s.At.Below("description"))
}

func sandbox(key string, used func(*appconfig.Sandbox) bool) finder {
	return func(a *appconfig.App) []use {
		if a.Sandbox == nil {
			return nil
		}
		return found(used(a.Sandbox), a.Sandbox.At.Below(key))
	}
}

func inputs(key string, used func(*appconfig.Input) bool) finder {
	return func(a *appconfig.App) (uses []use) {
		for i := range a.Inputs {
			uses = append(uses, found(used(&a.Inputs[i]), a.Inputs[i].At.Below(key))...)
		}
		return uses
	}
}

// drifts says whether runners look for drift of a component.
func drifts(c *appconfig.Component) bool { return jobspec.Kinds[jobspec.Kind(c.Type)].Drifts() }

func components(key string, used func(*appconfig.Component) bool) finder {
	return func(a *appconfig.App) (uses []use) {
		for i := range a.Components {
			uses = append(uses, found(used(&a.Components[i]), a.Components[i].At.Below(key))...)
		}
		return uses
	}
}

func componentType(t appconfig.ComponentType) finder {
	return components("type", func(c *appconfig.Component) bool { return c.Type == t })
}

func actions(key string, used func(*appconfig.Action) bool) finder {
	return func(a *appconfig.App) (uses []use) {
		for i := range a.Actions {
			uses = append(uses, found(used(&a.Actions[i]), a.Actions[i].At.Below(key))...)
		}
		return uses
	}
}

func steps(key string, used func(*appconfig.Step) bool) finder {
	return func(a *appconfig.App) (uses []use) {
		for i := range a.Actions {
			for k := range a.Actions[i].Steps {
				uses = append(uses, found(used(&a.Actions[i].Steps[k]), a.Actions[i].At.Below("steps").Item(k).Below(key))...)
			}
		}
		return uses
	}
}

func installs(key string, used func(*appconfig.InstallConfig) bool) finder {
	return func(a *appconfig.App) (uses []use) {
		for i := range a.Installs {
			uses = append(uses, found(used(&a.Installs[i]), a.Installs[i].At.Below(key))...)
		}
		return uses
	}
}

func found(yes bool, at place.Place) []use {
	if !yes {
		return nil
	}
	return []use{{at: at}}
}
