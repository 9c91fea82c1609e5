package jobspec_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Work has a part for each type of component, under its name, and for nothing
// else.
func TestWorkOfEachComponentType(t *testing.T) {
	t.Parallel()
	parts := map[jobspec.Kind]bool{}
	for part := range reflect.TypeFor[jobspec.Work]().Fields() {
		name, _, _ := strings.Cut(part.Tag.Get("json"), ",")
		parts[jobspec.Kind(name)] = true
		if !jobspec.Kinds[jobspec.Kind(name)].Component {
			t.Errorf("Work.%s is of %q, which is no type of component in Kinds", part.Name, name)
		}
	}
	for kind, info := range jobspec.Kinds {
		if info.Component && !parts[kind] {
			t.Errorf("kind %s has no part in Work", kind)
		}
	}
}

// What a row says must fit together, and a spec without what its kind works from
// is unfit.
func TestKinds(t *testing.T) {
	t.Parallel()
	for kind, info := range jobspec.Kinds {
		built := info.Has(jobspec.OperationBuild)
		brought := kind == jobspec.KindScripts // to actions, which are planned
		looked := kind == jobspec.KindProbes
		switch {
		case info.Has(jobspec.OperationPlan) == (brought || looked):
			t.Errorf("%s: planned %t", kind, info.Has(jobspec.OperationPlan))
		case built != (info.Artifact != ""), built != (info.Component || brought):
			t.Errorf("%s: component %t, built %t, artifact %q", kind, info.Component, built, info.Artifact)
		case info.Template != "" && info.Artifact != jobspec.ArtifactFolder:
			t.Errorf("%s: template %s in an artifact of form %q", kind, info.Template, info.Artifact)
		case info.Probe() && !info.OnCluster:
			t.Errorf("%s is probed, and is not on a cluster", kind)
		case info.ByAgent && info.Component:
			t.Errorf("%s is a component that the agent deploys itself", kind)
		}
		err := jobspec.Spec{Kind: kind, Operation: jobspec.OperationPlan}.Validate()
		if want := "kind " + string(kind) + " needs "; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an empty plan of %s: %v, want %q", kind, err, want)
		}
	}
}

// The tag of an image is for people: of one that was built it tells where it is from.
func TestImageTag(t *testing.T) {
	t.Parallel()
	artifact := &jobspec.Artifact{Digest: "sha256:9f86d081884c7d659a2feaa0c55ad015"}
	for _, tt := range []struct {
		name string
		spec jobspec.Spec
		want string
	}{
		{"somebody else's", jobspec.Spec{Artifact: artifact, Work: jobspec.Work{ContainerImage: &jobspec.ContainerImage{Tag: "1.2"}}}, "1.2"},
		{"built from a commit", jobspec.Spec{Artifact: artifact, Work: jobspec.Work{DockerBuild: &jobspec.DockerBuild{Commit: "0123456789abcdef0123456789abcdef01234567"}}}, "0123456789ab"},
		{"built from a directory", jobspec.Spec{Artifact: artifact, Work: jobspec.Work{DockerBuild: &jobspec.DockerBuild{}}}, "9f86d081884c"},
		{"no image", jobspec.Spec{Artifact: artifact}, ""},
	} {
		if got := tt.spec.ImageTag(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	image := jobspec.Spec{
		Version: jobspec.Version, JobID: "job_1", OrgID: "org_1", InstallID: "ins_1", TimeoutSeconds: 1,
		Kind: jobspec.KindContainerImage, Operation: jobspec.OperationPlan, ChangeID: "chg_1",
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "web"}, Artifact: &jobspec.Artifact{},
		Work: jobspec.Work{ContainerImage: &jobspec.ContainerImage{}},
	}
	for _, tt := range []struct {
		name string
		edit func(*jobspec.Spec)
		want []string // what is said of it, in this order
	}{
		{"a plan", func(*jobspec.Spec) {}, nil},
		{"nothing of what every job has", func(s *jobspec.Spec) { s.Version, s.OrgID, s.TimeoutSeconds = 9, "", 0 },
			[]string{"version is 9, this runner knows 1", "job_id and org_id are required", "timeout_seconds must be positive"}},
		{"no work", func(s *jobspec.Spec) { s.Work = jobspec.Work{} }, []string{"kind container_image needs container_image"}},
		{"work of another kind", func(s *jobspec.Spec) { s.Kind = jobspec.KindHelmChart }, []string{"kind helm_chart needs helm_chart"}},
		{"an unknown kind", func(s *jobspec.Spec) { s.Kind, s.Resource = "vm", nil },
			[]string{`kind "vm" is not known`, "operation plan needs resource and artifact"}},
		{"an unknown operation", func(s *jobspec.Spec) { s.Operation = "drop" }, []string{`operation "drop" is not known`}},
		{"a plan of nothing", func(s *jobspec.Spec) { s.ChangeID, s.Artifact = "", nil },
			[]string{"operation plan needs change_id and install_id", "operation plan needs resource and artifact"}},
		{"an apply of no plan", func(s *jobspec.Spec) { s.Operation = jobspec.OperationApply }, []string{"an apply needs what its plan pinned"}},
		{"a build, which needs no work", func(s *jobspec.Spec) {
			s.Operation, s.Work, s.BuildID, s.Source = jobspec.OperationBuild, jobspec.Work{}, "bld_1", &jobspec.Source{Push: "org/app/web"}
		}, nil},
		{"a build of nothing", func(s *jobspec.Spec) { s.Operation = jobspec.OperationBuild }, []string{"a build needs build_id, source and where to push"}},
		{"a build of an action", func(s *jobspec.Spec) {
			s.Kind, s.Operation, s.BuildID, s.Source = jobspec.KindAction, jobspec.OperationBuild, "bld_1", &jobspec.Source{Push: "org/app/web"}
		}, []string{"kind action needs action with steps"}},
		{"a build of scripts", func(s *jobspec.Spec) {
			s.Kind, s.Operation, s.Work, s.Resource, s.BuildID = jobspec.KindScripts, jobspec.OperationBuild, jobspec.Work{}, nil, "bld_1"
			s.Source = &jobspec.Source{Push: "org/app/web"}
		}, nil},
		{"a plan of scripts", func(s *jobspec.Spec) { s.Kind = jobspec.KindScripts }, []string{"kind scripts needs scripts"}},
		{"a check in a directory whose digest is a path", func(s *jobspec.Spec) {
			s.Kind, s.Operation = jobspec.KindAction, jobspec.OperationRun
			s.Action = &jobspec.Action{ReadOnly: true, Steps: []jobspec.ActionStep{{Artifact: &jobspec.Artifact{Digest: "sha256:../../pinned"}}}}
		}, []string{`a step's artifact has no valid digest: "sha256:../../pinned"`}},
		{"a run of an image", func(s *jobspec.Spec) { s.Operation = jobspec.OperationRun }, []string{"only a read-only action runs without a plan"}},
		{"a run of an action that writes", func(s *jobspec.Spec) {
			s.Kind, s.Operation, s.Action = jobspec.KindAction, jobspec.OperationRun, &jobspec.Action{Steps: []jobspec.ActionStep{{}}}
		}, []string{"only a read-only action runs without a plan"}},
		{"a check", func(s *jobspec.Spec) {
			s.Kind, s.Operation, s.Action = jobspec.KindAction, jobspec.OperationRun, &jobspec.Action{ReadOnly: true, Steps: []jobspec.ActionStep{{}}}
		}, nil},
		{"a probe of nothing", func(s *jobspec.Spec) {
			s.Kind, s.Operation, s.Resource, s.HelmChart = jobspec.KindHelmChart, jobspec.OperationRun, nil, &jobspec.HelmChart{}
		}, []string{"a probe needs the resource that it looks at"}},
		{"a release", func(s *jobspec.Spec) { s.Kind, s.Release = jobspec.KindRelease, &jobspec.Release{ID: "rel_1"} }, nil},
		{"no release", func(s *jobspec.Spec) { s.Kind = jobspec.KindRelease }, []string{"kind release needs release"}},
		{"a release without an id", func(s *jobspec.Spec) { s.Kind, s.Release = jobspec.KindRelease, &jobspec.Release{} },
			[]string{"kind release needs the id of the release"}},
		{"scripts to forget", func(s *jobspec.Spec) {
			s.Kind, s.Destroy, s.Release = jobspec.KindRelease, true, &jobspec.Release{Scripts: []jobspec.Script{{}}}
		}, []string{"what forgets all scripts brings none"}},
		{"a run of a release", func(s *jobspec.Spec) {
			s.Kind, s.Operation, s.Release = jobspec.KindRelease, jobspec.OperationRun, &jobspec.Release{ID: "rel_1"}
		}, []string{"a release is planned and applied, nothing else", "only a read-only action runs without a plan"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			spec := image
			tt.edit(&spec)
			got := ""
			if err := spec.Validate(); err != nil {
				got = err.Error()
			}
			if want := strings.Join(tt.want, "\n"); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// A job of a chart gets the state of its component when releases are, or may be, in it; a
// probe and a build never.
func TestKeepsReleases(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		operation jobspec.Operation
		chart     jobspec.HelmChart
		want      bool
	}{
		{"a plan with nuon", jobspec.OperationPlan, jobspec.HelmChart{StorageDriver: jobspec.StorageNuon}, true},
		{"an apply with nuon", jobspec.OperationApply, jobspec.HelmChart{StorageDriver: jobspec.StorageNuon}, true},
		{"a release that may have to move", jobspec.OperationPlan, jobspec.HelmChart{StorageDriver: "secret", RecordsHeld: true}, true},
		{"in the cluster", jobspec.OperationApply, jobspec.HelmChart{StorageDriver: "secret"}, false},
		{"a probe", jobspec.OperationRun, jobspec.HelmChart{StorageDriver: jobspec.StorageNuon, RecordsHeld: true}, false},
		{"a build", jobspec.OperationBuild, jobspec.HelmChart{StorageDriver: jobspec.StorageNuon}, false},
	} {
		s := jobspec.Spec{Kind: jobspec.KindHelmChart, Operation: tc.operation, Work: jobspec.Work{HelmChart: &tc.chart}}
		if got := s.KeepsState(); got != tc.want || s.KeepsReleases() != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if (jobspec.Spec{Kind: jobspec.KindHelmChart, Operation: jobspec.OperationPlan}).KeepsState() {
		t.Error("a chart without work keeps a state")
	}
}
