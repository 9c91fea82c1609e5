package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/order"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

const (
	// defaultDeployTimeout bounds a plan or an apply that the app says nothing
	// about.
	defaultDeployTimeout = time.Hour
)

// subject is what a change is about: the revision to bring about (or, for a
// teardown, the one that is live) and its artifact.
type subject struct {
	resource   db.Resource
	releaseID  string
	revisionID string
	repository string
	digest     string
	typ        string
	spec       json.RawMessage
	override   appconfig.InstallComponent // what the install says itself; of another type it counts for nothing
}

// subjectOf finds what a deploy or teardown step is about.
func (r *round) subjectOf(ctx context.Context, step db.Step) (subject, error) {
	resource := r.resource(optional.Value(step.ResourceID))
	release := optional.Value(r.workflow.ReleaseID)
	if flow.StepKind(step.Kind) == flow.StepTeardown {
		release = optional.Value(resource.LiveReleaseID)
	}
	items, err := r.tx.ReleaseItemsOf(ctx, release)
	if err != nil {
		return subject{}, fmt.Errorf("read release items: %w", err)
	}
	for _, item := range items {
		if resource.ComponentID != nil && item.ComponentID == *resource.ComponentID {
			overrides, err := overridesOf(ctx, r.tx, r.install.ID, r.workflow.InputsVersion)
			return subject{
				override: overrides[resource.Name], resource: resource, releaseID: release, revisionID: item.RevisionID,
				repository: item.ArtifactRepository, digest: item.ArtifactDigest, typ: item.Type, spec: item.Spec,
			}, err
		}
	}
	return subject{}, fmt.Errorf("release %s has no item for resource %s", release, resource.Name)
}

// overridesOf reads what a version of an install's inputs overrides, by component.
func overridesOf(ctx context.Context, tx *store.Tx, installID string, version int32) (map[string]appconfig.InstallComponent, error) {
	if version == 0 {
		return nil, nil
	}
	row, err := tx.GetInputs(ctx, db.GetInputsParams{InstallID: installID, Version: version})
	if err != nil {
		return nil, fmt.Errorf("read inputs: %w", err)
	}
	overrides := map[string]appconfig.InstallComponent{}
	if err := json.Unmarshal(row.Overrides, &overrides); err != nil {
		return nil, fmt.Errorf("read overrides: %w", err)
	}
	return overrides, nil
}

// fill completes the spec of a plan with what the engine of the subject's type
// works from, and returns how long the engine may take.
func (sub subject) fill(spec *jobspec.Spec, app *appconfig.App) (time.Duration, error) {
	if sub.resource.Kind == "sandbox" {
		var s appconfig.Sandbox
		if err := json.Unmarshal(sub.spec, &s); err != nil {
			return 0, fmt.Errorf("read sandbox revision: %w", err)
		}
		spec.Kind, spec.TerraformModule = jobspec.KindTerraformModule, module(s.TerraformVersion, s.Vars, s.EnvVars, s.VarFiles)
		spec.File = s.At.File
		return defaultDeployTimeout, nil
	}
	var c appconfig.Component
	if err := json.Unmarshal(sub.spec, &c); err != nil {
		return 0, fmt.Errorf("read component revision: %w", err)
	}
	spec.File = c.At.File
	switch {
	case c.TerraformModule != nil:
		m := c.TerraformModule
		spec.Kind, spec.TerraformModule = jobspec.KindTerraformModule, module(m.TerraformVersion, m.Vars, m.EnvVars, m.VarFiles)
		spec.TerraformModule.InstallVars = sub.override.TFVars
	case c.HelmChart != nil:
		spec.Kind, spec.HelmChart = jobspec.KindHelmChart, helmChart(c.HelmChart, app.Runner)
		spec.HelmChart.InstallValues = sub.override.HelmValues
	case c.KubernetesManifest != nil:
		spec.Kind = jobspec.KindKubernetesManifest
		spec.KubernetesManifest = &jobspec.KubernetesManifest{
			Namespace: c.KubernetesManifest.Namespace, CreateNamespace: c.KubernetesManifest.InNewNamespace(),
		}
		if m := c.KubernetesManifest.Manifest; m != nil {
			spec.KubernetesManifest.ManifestName = m.File
		}
	case c.ContainerImage != nil && c.ContainerImage.Public != nil:
		spec.Kind, spec.ContainerImage = jobspec.KindContainerImage, &jobspec.ContainerImage{Tag: c.ContainerImage.Public.Tag}
	default:
		return 0, fmt.Errorf("component %q of type %s has no engine in this version", c.Name, c.Type)
	}
	if c.DeployTimeout.Std() > 0 {
		return c.DeployTimeout.Std(), nil
	}
	return defaultDeployTimeout, nil
}

// helmChart says where releases are kept when the component does not: as
// runner.toml says, else in Secrets. They hold what was rendered, secrets
// included, and it is where Helm's own commands look.
func helmChart(h *appconfig.HelmChart, runner *appconfig.Runner) *jobspec.HelmChart {
	driver := h.StorageDriver
	if driver == "" && runner != nil {
		driver = runner.HelmDriver
	}
	if driver == "" {
		driver = appconfig.StorageSecret
	}
	spec := &jobspec.HelmChart{
		ReleaseName: h.ChartName, Namespace: h.Namespace, CreateNamespace: h.InNewNamespace(),
		StorageDriver: driver, Values: h.Values, TakeOwnership: h.TakeOwnership,
	}
	for _, f := range h.ValuesFiles {
		spec.ValuesFiles = append(spec.ValuesFiles, f.Contents.Contents)
		spec.ValuesFileNames = append(spec.ValuesFileNames, f.Contents.File)
	}
	return spec
}

func module(version string, vars, env map[string]string, files []appconfig.VarFile) *jobspec.TerraformModule {
	m := &jobspec.TerraformModule{TerraformVersion: version, EnvVars: env}
	if len(vars) > 0 {
		m.Vars = make(map[string]any, len(vars))
		for k, v := range vars {
			m.Vars[k] = v
		}
	}
	for _, f := range files {
		m.VarFiles = append(m.VarFiles, f.Contents.Contents)
		m.VarFileNames = append(m.VarFileNames, f.Contents.File)
	}
	return m
}

// ActionSpec finds an action of the app and turns it into what the engine works
// from.
func ActionSpec(app *appconfig.App, name string, inputs map[string]string) (*jobspec.Action, time.Duration, error) {
	a := app.Action(name)
	if a == nil {
		return nil, 0, fmt.Errorf("the release has no action %q", name)
	}
	_, check := a.HealthCheck()
	spec := &jobspec.Action{Name: a.Name, Inputs: inputs, ReadOnly: check, File: a.At.File}
	for _, s := range a.Steps {
		withCluster := a.EnableKubeConfig
		if s.EnableKubeConfig != nil {
			withCluster = *s.EnableKubeConfig
		}
		step := jobspec.ActionStep{Name: s.Name, Command: s.Command, EnvVars: s.EnvVars, NoKubeConfig: !withCluster}
		if s.InlineContents != nil {
			step.InlineContents, step.ScriptName = s.InlineContents.Contents, s.InlineContents.File
		}
		spec.Steps = append(spec.Steps, step)
	}
	return spec, a.Timeout.Std(), nil
}

// app reads the app as the workflow's release pins it.
func (r *round) app(ctx context.Context) (*appconfig.App, error) {
	return AppOfRelease(ctx, r.tx.Queries, optional.Value(r.workflow.ReleaseID))
}

// AppOfRelease reads the app as a release pins it.
func AppOfRelease(ctx context.Context, q *db.Queries, releaseID string) (*appconfig.App, error) {
	row, err := q.ConfigBodyOfRelease(ctx, releaseID)
	if err != nil {
		return nil, fmt.Errorf("read config of release %s: %w", releaseID, err)
	}
	var app appconfig.App
	if err := json.Unmarshal(row.Body, &app); err != nil {
		return nil, fmt.Errorf("read config of release %s: %w", releaseID, err)
	}
	return &app, nil
}

// AppInForce reads the app as a release pins it, without the actions that need a
// component that can be off and is not there: they could only fail.
func AppInForce(ctx context.Context, q *db.Queries, installID, releaseID string) (*appconfig.App, error) {
	app, err := AppOfRelease(ctx, q, releaseID)
	if err != nil {
		return nil, err
	}
	resources, err := q.ResourcesOfInstall(ctx, installID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	there := map[string]bool{}
	for _, r := range resources {
		there[r.Name] = there[r.Name] || r.Kind == "component" && r.LiveReleaseID != nil
	}
	out := func(name string) bool {
		c := app.Component(name)
		return c != nil && c.Toggleable && !there[name]
	}
	kept := make([]appconfig.Action, 0, len(app.Actions))
	for i := range app.Actions {
		if !app.ActionNeedsAny(&app.Actions[i], out) {
			kept = append(kept, app.Actions[i])
		}
	}
	app.Actions = kept
	return app, nil
}

// baseSpec fills what all jobs of the install have in common.
func (r *round) baseSpec(kind jobspec.Kind, op jobspec.Operation, timeout time.Duration) jobspec.Spec {
	return jobspec.Spec{
		Version: jobspec.Version, JobID: newID(id.Job), OrgID: r.workflow.OrgID, InstallID: r.install.ID,
		Kind: kind, Operation: op, InputsVersion: int(r.workflow.InputsVersion),
		TimeoutSeconds: int(timeout / time.Second),
	}
}

// job is one for the install's runner, with what its order says beside the spec.
type job struct {
	spec        jobspec.Spec
	actionRunID *string
	releaseID   string
	// origin is set for jobs of a change.
	origin string
	// The rest is of jobs that mutate.
	fence                         *int64
	effectDigest, planBytesDigest string
}

// dispatch stores a job with its order for the install's runner, and wakes the
// runner once it is committed.
func (r *round) dispatch(ctx context.Context, step db.Step, j job) error {
	spec := j.spec
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("job for step %s: %w", step.Name, err)
	}
	if r.runner == nil {
		return fmt.Errorf("job for step %s: install %s has no runner", step.Name, r.install.ID)
	}
	signed, err := r.order(ctx, j)
	if err != nil {
		return fmt.Errorf("order for step %s: %w", step.Name, err)
	}
	p := db.InsertRunnerJobParams{
		ID: spec.JobID, RunnerID: r.runner.ID, InstallID: &r.install.ID, StepID: &step.ID, WorkflowID: &r.workflow.ID,
		ChangeID: optional.Of(spec.ChangeID), ResourceID: step.ResourceID,
		Kind: string(spec.Kind), Operation: string(spec.Operation), Mutates: spec.Mutates(),
		Spec: signed.Spec, SignedOrder: signed.Envelope, Fence: j.fence, ActionRunID: j.actionRunID,
		TimeoutSeconds: int32(spec.TimeoutSeconds), Trace: mustJSON(telemetry.Inject(ctx)),
	}
	if err := r.tx.InsertRunnerJob(ctx, p); err != nil {
		return fmt.Errorf("store job for step %s: %w", step.Name, err)
	}
	r.tx.NotifyAfterCommit("berth_jobs", r.runner.ID)
	return r.event(ctx, "job", map[string]any{"job_id": spec.JobID, "step": step.Name, "operation": string(spec.Operation)})
}

// order signs what the runner is to do with the org's dispatch key.
func (r *round) order(ctx context.Context, j job) (order.Signed, error) {
	key, err := r.Keys.Dispatch(ctx, r.tx)
	if err != nil {
		return order.Signed{}, err
	}
	draft := order.Draft{
		RunnerID: r.runner.ID, MachineKey: r.runner.PublicKey, OriginID: j.origin, ReleaseID: j.releaseID,
		MinRunnerVersion: r.MinRunnerVersion, Actor: r.workflow.CreatedBy,
		EffectDigest: j.effectDigest, PlanBytesDigest: j.planBytesDigest,
	}
	if j.fence != nil {
		draft.Fence = *j.fence
	}
	if draft.Actor == "" {
		draft.Actor = "ctl-api"
	}
	return order.Sign(key, j.spec, draft, r.now())
}
