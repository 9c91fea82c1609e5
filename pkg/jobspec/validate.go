package jobspec

import (
	"errors"
	"fmt"
	"regexp"
)

var artifactDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// problems collects what makes a spec unfit.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// Validate reports everything that makes s unfit to be worked on.
func (s Spec) Validate() error {
	var p problems
	s.validateHead(&p)
	s.validateKind(&p)
	s.validateOperation(&p)
	return errors.Join(p...)
}

// validateHead checks what every job has.
func (s Spec) validateHead(p *problems) {
	if s.Version != Version {
		p.add("version is %d, this runner knows %d", s.Version, Version)
	}
	if s.JobID == "" || s.OrgID == "" {
		p.add("job_id and org_id are required")
	}
	if s.TimeoutSeconds <= 0 {
		p.add("timeout_seconds must be positive")
	}
}

// validateKind checks that the job has what its kind works from.
func (s Spec) validateKind(p *problems) {
	kind, known := Kinds[s.Kind]
	switch {
	case !known:
		p.add("kind %q is not known", s.Kind)
	case kind.given(s), kind.Has(OperationBuild) && s.Operation == OperationBuild: // a build works from its source
	case s.Kind == KindAction:
		p.add("kind %s needs action with steps", s.Kind)
	default:
		p.add("kind %s needs %s", s.Kind, s.Kind)
	}
	if s.Kind == KindRelease {
		s.validateRelease(p)
	}
	if s.Action != nil {
		if s.Action.AdHoc && s.Action.BreakGlassRole != "" {
			p.add("a script that is part of no release runs under no role of the app")
		}
		s.Action.validateArtifacts(p)
	}
	if s.SecretSync != nil {
		s.SecretSync.validate(p)
	}
	if s.RunnerUpdate != nil {
		s.RunnerUpdate.validate(p)
	}
	s.validateProbes(p)
	s.validateCluster(p)
	if s.overridden() && (s.Resource == nil || s.Resource.Kind != "component") {
		p.add("install_vars and install_values are only for a component of an install")
	}
}

// validateProbes checks that probes are of live components in a cluster, the same for all.
func (s Spec) validateProbes(p *problems) {
	for _, probe := range s.Probes {
		work := Spec{Kind: probe.Kind, Work: probe.Work}
		switch kind := Kinds[probe.Kind]; {
		case !kind.Probe() || !kind.given(work):
			p.add("a probe of kind %q looks at nothing", probe.Kind)
		case probe.Resource.ID == "" || probe.Resource.Name == "":
			p.add("a probe names no resource")
		case !SameCluster(s.Probes[0], probe):
			p.add("probes are on different clusters")
		}
	}
}

// validateArtifacts checks the digests of the directories that steps run in: they
// become names of directories.
func (a Action) validateArtifacts(p *problems) {
	for _, artifact := range a.Artifacts() {
		if !artifactDigest.MatchString(artifact.Digest) {
			p.add("a step's artifact has no valid digest: %q", artifact.Digest)
		}
	}
}

// validateOperation checks that the job has what its operation needs.
func (s Spec) validateOperation(p *problems) {
	switch s.Operation {
	case OperationBuild:
		if s.Source == nil || s.Source.Push == "" || s.BuildID == "" {
			p.add("a build needs build_id, source and where to push")
		}
	case OperationPlan, OperationApply:
		s.validateChange(p)
	case OperationRun:
		s.validateRun(p)
	case OperationDrift:
		if s.Resource == nil || s.InstallID == "" || s.Drift == nil || s.Drift.Change == "" {
			p.add("a look for drift needs the resource of an install, and the change that made what is live")
		}
		if Kinds[s.Kind].HasState && (s.Drift == nil || s.Drift.State == nil) {
			p.add("a look for drift of kind %s needs the state that is live", s.Kind)
		}
	case OperationTick:
		if s.InstallID == "" || s.Action.readOnly() {
			p.add("a tick runs an action of an install that may change something")
		}
	default:
		p.add("operation %q is not known", s.Operation)
	}
}

// validateChange checks a plan or an apply.
func (s Spec) validateChange(p *problems) {
	if s.ChangeID == "" || s.InstallID == "" {
		p.add("operation %s needs change_id and install_id", s.Operation)
	}
	switch kind, known := Kinds[s.Kind]; {
	case kind.NoArtifact:
		if s.Resource == nil || s.Artifact != nil {
			p.add("operation %s of kind %s needs a resource, and has no artifact", s.Operation, s.Kind)
		}
	case (kind.Component || kind.Resource || !known) && (s.Resource == nil || s.Artifact == nil):
		p.add("operation %s needs resource and artifact", s.Operation)
	}
	if s.Operation == OperationApply && s.Pinned == "" {
		p.add("an apply needs what its plan pinned")
	}
	if s.Action != nil && s.Resource != nil && !s.Action.AdHoc {
		p.add("an action has no resource")
	}
}

// validateRun checks work without a plan: a probe, or a script that only reads.
func (s Spec) validateRun(p *problems) {
	switch probe := Kinds[s.Kind].Probe(); {
	case probe && s.Resource == nil:
		p.add("a probe needs the resource that it looks at")
	case s.Kind == KindProbes:
	case !probe && s.Action != nil && s.Action.AdHoc:
		p.add("a script that is part of no release does not run without a plan")
	case !probe && (s.Kind != KindAction || !s.Action.readOnly()):
		p.add("only a read-only action runs without a plan")
	}
}

// validateRelease checks what is special about accepting a release.
func (s Spec) validateRelease(p *problems) {
	switch {
	case s.Release == nil: // said before
	case s.Destroy && len(s.Release.Scripts) > 0:
		p.add("what forgets all scripts brings none")
	case !s.Destroy && s.Release.ID == "":
		p.add("kind %s needs the id of the release", s.Kind)
	}
	if s.Operation != OperationPlan && s.Operation != OperationApply {
		p.add("a release is planned and applied, nothing else")
	}
}

// overridden says whether the install says something of its own.
func (s Spec) overridden() bool {
	return s.TerraformModule != nil && s.TerraformModule.InstallVars != "" || s.HelmChart != nil && s.HelmChart.InstallValues != ""
}

func (a *Action) readOnly() bool { return a != nil && a.ReadOnly }
