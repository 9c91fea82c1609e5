package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Unsupported tells what of a config this version cannot deploy (errors) or
// reads without effect (warnings). It says nothing about what is right or
// wrong: a folder without a word from loading and [Validate] may still not be
// deployable today.
func Unsupported(app *appconfig.App) []place.Diagnostic {
	u := unsupported{place.Report{Origin: &app.Origin}}
	if app.Sandbox != nil {
		u.sandbox(app.Sandbox)
	}
	for i := range app.Components {
		u.component(&app.Components[i])
	}
	for i := range app.Actions {
		u.action(&app.Actions[i])
	}
	u.kinds(app)
	return place.Sort(u.Diags)
}

type unsupported struct{ place.Report }

func (u *unsupported) refuse(at place.Place, format string, args ...any) {
	u.Add(place.Error, place.CodeUnsupported, at, format+" not supported yet by this version", args...)
}

func (u *unsupported) key(severity place.Severity, at place.Place) {
	u.Add(severity, place.CodeUnsupported, at, "key %q is not supported yet by this version", at.Last())
}

// extension warns of what Berth's own keys say and nothing heeds yet.
func (u *unsupported) extension(at place.Place, ext *appconfig.BlockExtension) {
	if ext == nil {
		return
	}
	if ext.Rollback != "" {
		u.key(place.Warning, at.Below("berth.rollback"))
	}
	if len(ext.Guardrails) > 0 {
		u.key(place.Warning, at.Below("berth.guardrails"))
	}
}

func (u *unsupported) sandbox(s *appconfig.Sandbox) {
	u.extension(s.At, s.Berth)
	if s.Type == appconfig.SandboxTypePulumi {
		u.refuse(s.At.Below("type"), "sandbox type %q is", s.Type)
		return
	}
	if len(s.PulumiConfig) > 0 {
		u.key(place.Error, s.At.Below("pulumi_config"))
	}
}

func (u *unsupported) component(c *appconfig.Component) {
	u.extension(c.At, c.Berth)
	switch {
	case c.TerraformModule != nil:
	case c.HelmChart != nil:
		if c.HelmChart.HelmRepo != nil {
			u.refuse(c.At.Below("helm_repo"), "a chart of a chart repository is")
		}
		if c.HelmChart.StorageDriver == appconfig.StorageNuon {
			u.refuse(c.At.Below("storage_driver"), "storage_driver %q is", appconfig.StorageNuon)
		}
	case c.KubernetesManifest != nil:
		if c.KubernetesManifest.Kustomize != nil {
			u.refuse(c.At.Below("kustomize"), "a manifest made by kustomize is")
		}
	case c.ContainerImage != nil:
		if c.ContainerImage.ECR != nil {
			u.refuse(c.At.Below("aws_ecr"), "an image of aws_ecr is")
		}
		if p := c.ContainerImage.Public; p != nil && p.UpdatePolicy != "" {
			u.refuse(c.At.Below("public.update_policy"), "update_policy is")
		}
	case c.Plugin != nil || c.Type.IsKnown():
		u.refuse(c.At.Below("type"), "component type %q is", c.Type)
	}
	if c.KubernetesContext != "" && c.KubernetesContext != appconfig.SandboxContext {
		u.key(place.Error, c.At.Below("kubernetes_context"))
	}
	if c.Health != nil {
		u.key(place.Warning, c.At.Below("health"))
	}
}

func (u *unsupported) action(a *appconfig.Action) {
	if a.KubernetesContext != "" && a.KubernetesContext != appconfig.SandboxContext {
		u.key(place.Error, a.At.Below("kubernetes_context")) // it would run against another cluster
	}
	if a.Image != "" {
		u.key(place.Error, a.At.Below("image")) // the steps would run in another place
	}
	if a.Berth != nil && len(a.Berth.Guardrails) > 0 {
		u.key(place.Warning, a.At.Below("berth.guardrails"))
	}
	if check, _ := a.HealthCheck(); check.Remediation != "" {
		u.key(place.Warning, a.At.Below("berth.health_check.remediation"))
	}
}

// kinds warns of every file that is read without effect.
func (u *unsupported) kinds(app *appconfig.App) {
	told := map[string]bool{}
	tell := func(kind string, at place.Place) {
		if !told[kind+at.File] {
			told[kind+at.File] = true
			u.Add(place.Warning, place.CodeUnsupported, place.Place{File: at.File}, "%q is not supported yet by this version and has no effect", kind)
		}
	}
	for _, r := range app.Permissions {
		tell("permissions", r.At)
	}
	for _, r := range app.BreakGlass {
		tell("break_glass", r.At)
	}
	for _, p := range app.Policies {
		tell("policies", p.At)
	}
	for _, r := range app.Runbooks {
		tell("runbooks", r.At)
	}
	u.installs(app)
	if app.InstallsRepo != nil {
		tell("installs", app.InstallsRepo.At)
	}
	for _, b := range app.Branches {
		tell("branches", b.At)
	}
	if app.OperationRoles != nil {
		tell("operation_roles", app.OperationRoles.At)
	}
	for _, k := range app.KubernetesContexts {
		tell("kubernetes_contexts", k.At)
	}
	for _, t := range app.EventTriggers {
		tell("triggers", t.At)
	}
	if app.Metadata.CustomerManaged != nil {
		tell("customer_managed", app.Metadata.At)
	}
}

// installs refuses values that nobody but the install may know in a file that is
// uploaded with the app. Files below installs/ are not.
func (u *unsupported) installs(app *appconfig.App) {
	sensitive := map[string]bool{}
	for _, in := range app.Inputs {
		sensitive[in.Name] = in.Sensitive
	}
	for _, in := range app.Installs {
		if strings.HasPrefix(in.At.File, "installs/") {
			continue
		}
		for _, values := range in.Inputs {
			for _, name := range slices.Sorted(maps.Keys(values)) {
				if sensitive[name] {
					u.Add(place.Error, place.CodeUnsupported, in.At.Below("inputs"), "install %q sets the sensitive input %q in a file that is uploaded: move the install into installs/, or set it with `berth installs inputs`", in.Name, name)
				}
			}
		}
	}
}
