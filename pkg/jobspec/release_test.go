package jobspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func check(edit ...func(*jobspec.Script)) jobspec.Script {
	s := jobspec.Script{
		Action: jobspec.Action{Name: "up", ReadOnly: true, File: "actions/up.toml", Steps: []jobspec.ActionStep{
			{Name: "one", InlineContents: "curl {{ .nuon.url }}\n", ScriptName: "actions/up.sh", EnvVars: map[string]string{"A": "b"}},
		}},
		Cron: "* * * * *", TimeoutSeconds: 30, HealthCheck: true,
	}
	s.Action.Steps = append([]jobspec.ActionStep{}, s.Action.Steps...)
	for _, e := range edit {
		e(&s)
	}
	return s
}

func digest(t *testing.T, s jobspec.Script) string {
	t.Helper()
	d, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDigestOfAScriptCoversWhatItDoes(t *testing.T) {
	t.Parallel()
	same := digest(t, check())
	for _, tc := range []struct {
		name string
		edit func(*jobspec.Script)
		want bool // the same digest
	}{
		{"what a run brings", func(s *jobspec.Script) { s.Action.Inputs = map[string]string{"X": "y"} }, true},
		{"the file of the action", func(s *jobspec.Script) { s.Action.File = "actions/other.toml" }, true},
		{"the file of the text", func(s *jobspec.Script) { s.Action.Steps[0].ScriptName = "other.sh" }, true},
		{"the directory of a repository", func(s *jobspec.Script) { s.Action.Steps[0].Artifact = &jobspec.Artifact{Digest: "sha256:a"} }, false},
		{"one byte of the text", func(s *jobspec.Script) { s.Action.Steps[0].InlineContents = "curl {{ .nuon.urL }}\n" }, false},
		{"a value of the environment", func(s *jobspec.Script) { s.Action.Steps[0].EnvVars = map[string]string{"A": "c"} }, false},
		{"the image", func(s *jobspec.Script) { s.Action.Image = "{{ .nuon.components.tools.outputs.image.ref }}" }, false},
		{"the digest of the image", func(s *jobspec.Script) { s.Action.ImageDigest = "sha256:a" }, false},
		{"the way to the cluster", func(s *jobspec.Script) { s.Action.Steps[0].NoKubeConfig = true }, false},
		{"the schedule", func(s *jobspec.Script) { s.Cron = "*/5 * * * *" }, false},
		{"the role", func(s *jobspec.Script) { s.Role = "maintenance" }, false},
		{"the timeout", func(s *jobspec.Script) { s.TimeoutSeconds = 31 }, false},
		{"a value that a run may bring", func(s *jobspec.Script) { s.Inputs = []string{"PATH"} }, false},
		{"whether it is a health check", func(s *jobspec.Script) { s.HealthCheck = false }, false},
		{"whether it may run without a decision", func(s *jobspec.Script) { s.Action.ReadOnly = false }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := digest(t, check(tc.edit)) == same; got != tc.want {
				t.Errorf("the digest is the same: %v, want %v", got, tc.want)
			}
		})
	}
}

// A step's directory counts by what is in it, wherever it is kept.
func TestDigestOfAScriptInARepository(t *testing.T) {
	t.Parallel()
	in := func(repository, artifact string) jobspec.Script {
		return check(func(s *jobspec.Script) {
			s.Action.Steps[0].Artifact = &jobspec.Artifact{Repository: repository, Digest: artifact}
		})
	}
	script := in("org/app/scripts", "sha256:a")
	same := digest(t, script)
	if got := digest(t, in("org/app/other", "sha256:a")); got != same {
		t.Errorf("the same directory from another repository has digest %s, want %s", got, same)
	}
	if got := digest(t, in("org/app/scripts", "sha256:b")); got == same {
		t.Error("another directory has the same digest")
	}
	if got := script.Action.Steps[0].Artifact.Repository; got != "org/app/scripts" {
		t.Errorf("the script lost its repository: %q", got)
	}
	first := script.Action.Steps[0]
	steps := []jobspec.ActionStep{first, {}, {Artifact: &jobspec.Artifact{Digest: "sha256:b"}}, first}
	want := []jobspec.Artifact{{Repository: "org/app/scripts", Digest: "sha256:a"}, {Digest: "sha256:b"}}
	if diff := cmp.Diff(want, jobspec.Action{Steps: steps}.Artifacts()); diff != "" {
		t.Errorf("artifacts of an action (-want +got):\n%s", diff)
	}
}

func TestManifestFollowsFromTheRelease(t *testing.T) {
	t.Parallel()
	other := check(func(s *jobspec.Script) { s.Action.Name = "clean" })
	r := jobspec.Release{ID: "rel_1", Number: 4, Scripts: []jobspec.Script{check(), other, check()}, Artifacts: []jobspec.ReleaseArtifact{{"web", "sha256:b"}, {"api", "sha256:a"}}}
	m, err := r.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	config := func(name string, s jobspec.Script) jobspec.ManifestItem {
		return jobspec.ManifestItem{Kind: jobspec.ManifestConfig, Name: name, Digest: digest(t, jobspec.Script{Action: s.Action, TimeoutSeconds: s.TimeoutSeconds})}
	}
	want := jobspec.Manifest{ReleaseID: "rel_1", Number: 4, Items: []jobspec.ManifestItem{
		{Kind: jobspec.ManifestArtifact, Name: "api", Digest: "sha256:a"}, {Kind: jobspec.ManifestArtifact, Name: "web", Digest: "sha256:b"},
		config("action/clean", other), config("action/up", check()),
		{Kind: jobspec.ManifestScript, Name: "clean", Digest: digest(t, other)}, {Kind: jobspec.ManifestScript, Name: "up", Digest: digest(t, check())},
	}}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

func TestValidateRelease(t *testing.T) {
	t.Parallel()
	spec := func(op jobspec.Operation, destroy bool, r *jobspec.Release) jobspec.Spec {
		return jobspec.Spec{
			Version: jobspec.Version, JobID: "job", OrgID: "org", InstallID: "ins", ChangeID: "chg", TimeoutSeconds: 1, Pinned: "sha256:x",
			Kind: jobspec.KindRelease, Operation: op, Destroy: destroy, Release: r,
		}
	}
	for _, tc := range []struct {
		name string
		spec jobspec.Spec
		good bool
	}{
		{"a release is planned", spec(jobspec.OperationPlan, false, &jobspec.Release{ID: "rel"}), true},
		{"and applied", spec(jobspec.OperationApply, false, &jobspec.Release{ID: "rel"}), true},
		{"never just run", spec(jobspec.OperationRun, false, &jobspec.Release{ID: "rel"}), false},
		{"it needs a release", spec(jobspec.OperationPlan, false, nil), false},
		{"with an id", spec(jobspec.OperationPlan, false, &jobspec.Release{}), false},
		{"forgetting needs none", spec(jobspec.OperationPlan, true, &jobspec.Release{}), true},
		{"and brings no scripts", spec(jobspec.OperationPlan, true, &jobspec.Release{Scripts: []jobspec.Script{check()}}), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if err := tc.spec.Validate(); (err == nil) != tc.good {
				t.Errorf("Validate: %v, want good %v", err, tc.good)
			}
		})
	}
}

// What an install says itself is no part of a release; all else of a component is.
func TestConfigIsTheSameForEveryInstall(t *testing.T) {
	t.Parallel()
	chart := func(edit func(*jobspec.Spec)) string {
		s := jobspec.Spec{
			Kind: jobspec.KindHelmChart, Resource: &jobspec.Resource{ID: "res_1", Name: "api"}, Artifact: &jobspec.Artifact{Digest: "sha256:a"},
			Work: jobspec.Work{HelmChart: &jobspec.HelmChart{Namespace: "api"}},
		}
		edit(&s)
		item, ok, err := s.Config()
		if err != nil || !ok || item.Name != "api" {
			t.Fatalf("config: %+v, %v, %v", item, ok, err)
		}
		return item.Digest
	}
	same := chart(func(*jobspec.Spec) {})
	for _, tc := range []struct {
		name string
		edit func(*jobspec.Spec)
		want bool // the same digest
	}{
		{"the install's own values", func(s *jobspec.Spec) { s.HelmChart.InstallValues = "a: 1" }, true},
		{"where its releases are kept", func(s *jobspec.Spec) { s.HelmChart.RecordsHeld = true }, true},
		{"the state that templates read", func(s *jobspec.Spec) { s.State = []byte("{}") }, true},
		{"another resource row", func(s *jobspec.Spec) { s.Resource.ID = "res_2" }, true},
		{"the namespace", func(s *jobspec.Spec) { s.HelmChart.Namespace = "kube-system" }, false},
		{"the kind", func(s *jobspec.Spec) { s.Kind = jobspec.KindKubernetesManifest }, false},
	} {
		if got := chart(tc.edit) == same; got != tc.want {
			t.Errorf("%s: the digest is the same: %v, want %v", tc.name, got, tc.want)
		}
	}
	if _, ok, _ := (jobspec.Spec{Kind: jobspec.KindRelease}).Config(); ok {
		t.Error("an acceptance has a config")
	}
}
