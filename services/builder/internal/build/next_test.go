package build

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/internal/model"
)

var (
	someDigest  = "sha256:" + strings.Repeat("a", 64)
	otherDigest = "sha256:" + strings.Repeat("b", 64)
	someCommit  = strings.Repeat("c", 40)
)

func local(change ...func(*State)) State {
	s := State{Build: Build{
		ID: "bld_1", OrgID: "org_1", AppID: "app_1", App: "hello", ComponentID: "cmp_1", Component: "card",
		Type: "terraform_module", BuildDigest: otherDigest, Status: model.BuildQueued, Timeout: defaultTimeout,
		Source: source.Source{Kind: source.KindLocal, Digest: someDigest},
	}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func git(change ...func(*State)) State {
	return local(append([]func(*State){func(s *State) {
		s.Build.Source = source.Source{Kind: source.KindGit, Repo: "owner/name", Ref: "main", Directory: "module"}
	}}, change...)...)
}

func image(change ...func(*State)) State {
	return local(append([]func(*State){func(s *State) {
		s.Build.Type = "container_image"
		s.Build.Source = source.Source{Kind: source.KindImage, Repo: "registry.example.com/team/web", Ref: "1.2"}
	}}, change...)...)
}

// found is the digest behind a tag.
func found(digest string) func(*State) {
	return func(s *State) { s.Facts.Commit = source.Commit{Hash: digest} }
}

func resolved(s *State) {
	commit := ""
	if s.Build.Source.Kind == source.KindGit {
		commit = someCommit
	}
	if s.Build.Source.Kind == source.KindImage {
		commit = someDigest
	}
	s.Build.Commit, s.Build.Resolved = commit, resolvedDigest(s.Build, commit)
}

func staged(s *State) {
	s.Build.Provenance.Source.Archive = &jobspec.Artifact{Repository: "org_1/sources", Digest: otherDigest}
}

func cloneable(s *State) { s.Facts.Commit = source.Commit{URL: "https://h/r.git", Hash: someCommit} }

func onDisk(s *State) { s.Facts.Commit = source.Commit{URL: "file:///srv/r", Hash: someCommit} }

func withRunner(s *State) {
	key := "its key"
	s.Facts.RunnerID, s.Facts.RunnerReady, s.MachineKey = "rnr_1", true, &key
}

func notEnrolled(s *State) { s.MachineKey = nil }

func cancelRequested(s *State) { s.Build.CancelRequested = true }

func reusable(s *State) {
	s.Reusable = append(s.Reusable, Made{BuildID: "bld_0", Artifact: jobspec.BuiltArtifact{Repository: "org_1/hello/card", Digest: someDigest, SizeBytes: 7}})
}

func there(is bool) func(*State) {
	return func(s *State) { s.Facts.There = map[string]bool{someDigest: is} }
}

func job(state model.JobState, change ...func(*Job)) func(*State) {
	return func(s *State) {
		resolved(s)
		s.Build.Status, s.Build.JobID = model.BuildRunning, "job_1"
		s.Job = &Job{ID: "job_1", State: state, RunnerID: "rnr_1"}
		for _, c := range change {
			c(s.Job)
		}
	}
}

// differs is the result of an order that was refused because of these fields.
func differs(fields ...string) func(*Job) {
	return func(j *Job) {
		j.Error = "no such order"
		for _, field := range fields {
			j.Result.Differs = append(j.Result.Differs, jobspec.Difference{Field: field})
		}
	}
}

func pushed(repository, digest string) func(*Job) {
	return func(j *Job) {
		j.Result.Artifact = &jobspec.BuiltArtifact{Repository: repository, Digest: digest, SizeBytes: 9}
	}
}

func trouble(passing bool) func(*State) {
	return func(s *State) { s.Facts.Trouble = &Trouble{Text: "no", Passing: passing} }
}

func slow(s *State) {
	s.Facts.Trouble = &Trouble{Text: "no answer", Remedy: "correct repo in components/card.toml", Passing: true, Slow: true}
}

func TestNext(t *testing.T) {
	t.Parallel()
	made := jobspec.BuiltArtifact{Repository: "org_1/hello/card", Digest: someDigest, SizeBytes: 9}
	localSpec := jobspec.Spec{
		Version: 1, OrgID: "org_1", BuildID: "bld_1", Kind: "terraform_module", Operation: "build", TimeoutSeconds: 1800,
		Source: &jobspec.Source{Kind: "archive", Archive: &jobspec.Artifact{Repository: "org_1/sources", Digest: otherDigest}, Push: "org_1/hello/card"},
	}
	placedSpec := localSpec
	placedSpec.File = "components/card.toml"
	placedSpec.Source = &jobspec.Source{Kind: "archive", Archive: localSpec.Source.Archive, Push: localSpec.Source.Push, Directory: "src/card"}
	diskSpec := localSpec
	diskSpec.Source = &jobspec.Source{Kind: "archive", Archive: localSpec.Source.Archive, Push: localSpec.Source.Push, Repo: "owner/name", Ref: "main", Commit: someCommit, Directory: "module"}
	gitSpec := localSpec
	gitSpec.Source = &jobspec.Source{Kind: "git", Repo: "https://h/r.git", Ref: "main", Commit: someCommit, Directory: "module", Push: "org_1/hello/card"}
	imageSpec := localSpec
	imageSpec.Kind = "container_image"
	imageSpec.Source = &jobspec.Source{Kind: "image", Image: "registry.example.com/team/web", Ref: "1.2", ImageDigest: someDigest, Push: "org_1/hello/card"}
	copiedSpec, copied := imageSpec, *imageSpec.Source
	copied.Kind, copied.Copied = jobspec.SourceCopied, &made
	copiedSpec.Source, copiedSpec.Policies = &copied, image(ruled).Build.Policies
	for _, tc := range []struct {
		name string
		s    State
		want Decision
	}{
		{"a local source is exact as it is", local(), Decision{Act: RecordSource, Resolved: resolvedDigest(local().Build, "")}},
		{"a branch is looked up", git(), Decision{Act: Resolve}},
		{"what was found is recorded", git(cloneable), Decision{Act: RecordSource, Commit: someCommit, Resolved: resolvedDigest(git().Build, someCommit)}},
		{"trouble that may pass is shown and tried again", git(trouble(true)), Decision{Act: Note, Error: "no; trying again"}},
		{"but not for ever", git(trouble(true), func(s *State) { s.LastTry = true }), Decision{Act: Fail, Error: "no"}},
		{"trouble that stays fails at once", git(trouble(false)), Decision{Act: Fail, Error: "no"}},
		{"what takes long is tried twice", git(slow, func(s *State) { s.Try = 1 }), Decision{Act: Note, Error: "no answer; trying again"}},
		{"and not more often", git(slow, func(s *State) { s.Try = 2 }), Decision{Act: Fail, Error: "no answer; correct repo in components/card.toml"}},
		{"a source that is none names its file", git(func(s *State) { s.Build.SourceFault, s.Build.File = "what is this", "components/card.toml" }), Decision{Act: Fail, Error: "what is this; correct components/card.toml"}},
		{"a source that is none fails", local(func(s *State) { s.Build.SourceFault = "what is this" }), Decision{Act: Fail, Error: "what is this"}},

		{"an artifact of the same is looked for", local(resolved, reusable), Decision{Act: Look, Artifact: jobspec.BuiltArtifact{Repository: "org_1/hello/card", Digest: someDigest, SizeBytes: 7}}},
		{"and taken over when it is there", local(resolved, reusable, there(true)), Decision{Act: Reuse, Made: local(reusable).Reusable[0]}},
		{"a lost artifact is built again", local(resolved, reusable, there(false)), Decision{Act: Stage}},
		{"an older one will do when the newer is lost", local(resolved, reusable, there(false), func(s *State) {
			s.Reusable = append(s.Reusable, Made{BuildID: "bld_old", Artifact: jobspec.BuiltArtifact{Digest: otherDigest}})
		}), Decision{Act: Look, Artifact: jobspec.BuiltArtifact{Digest: otherDigest}}},

		{"a local source is pushed", local(resolved), Decision{Act: Stage}},
		{"where it is, is recorded", local(resolved, func(s *State) { s.Facts.Archive = &jobspec.Artifact{Digest: someDigest} }), Decision{Act: RecordArchive, Archive: &jobspec.Artifact{Digest: someDigest}}},
		{"a bad archive fails", local(resolved, trouble(false)), Decision{Act: Fail, Error: "no"}},
		{"a job needs a runner", local(resolved, staged), Decision{Act: StartRunner}},
		{"no order is made before the Build Runner has a key", local(resolved, staged, withRunner, notEnrolled), Decision{Act: Note, Error: "waiting for the Build Runner to start"}},
		{"nor for a machine that is being replaced", local(resolved, staged, withRunner, func(s *State) { s.Facts.RunnerReady = false }), Decision{Act: Note, Error: "waiting for the Build Runner to start"}},
		{"the job names where the source stands in the app folder", local(resolved, staged, withRunner, func(s *State) { s.Build.File, s.Build.Directory = "components/card.toml", "src/card" }),
			Decision{Act: QueueJob, RunnerID: "rnr_1", Spec: &placedSpec}},
		{"the job of an archive", local(resolved, staged, withRunner), Decision{Act: QueueJob, RunnerID: "rnr_1", Spec: &localSpec}},
		{"a commit on disk travels as an archive", git(resolved, onDisk), Decision{Act: Stage}},
		{"and is built as one", git(resolved, onDisk, staged, withRunner), Decision{Act: QueueJob, RunnerID: "rnr_1", Spec: &diskSpec}},
		{"a later worker asks again what to clone", git(resolved), Decision{Act: Resolve}},
		{"the job of a commit", git(resolved, cloneable, withRunner), Decision{Act: QueueJob, RunnerID: "rnr_1", Spec: &gitSpec}},

		{"a tag is looked up", image(), Decision{Act: Resolve}},
		{"its digest is recorded", image(found(someDigest)), Decision{Act: RecordSource, Commit: someDigest, Resolved: resolvedDigest(image().Build, someDigest)}},
		{"the same image is taken over", image(resolved, reusable, there(true)), Decision{Act: Reuse, Made: local(reusable).Reusable[0]}},
		{"an image needs no staging", image(resolved), Decision{Act: StartRunner}},
		{"the job of an image names its digest, also when the tag moved since", image(resolved, found(otherDigest), withRunner), Decision{Act: QueueJob, RunnerID: "rnr_1", Spec: &imageSpec}},

		{"a queued job is waited for", local(job("queued")), Decision{Act: Wait}},
		{"a leased job is waited for", local(job("leased")), Decision{Act: Wait}},
		{"the artifact of a job is looked for", local(job("succeeded", pushed("org_1/hello/card", someDigest))), Decision{Act: Look, Artifact: made}},
		{"and accepted", local(job("succeeded", pushed("org_1/hello/card", someDigest)), there(true)), Decision{Act: Succeed, Artifact: made}},
		{"a claim without a push is not", local(job("succeeded", pushed("org_1/hello/card", someDigest)), there(false)), Decision{Act: Fail, Error: "the Build Runner reported artifact " + someDigest + ", but it is not in the registry"}},
		{"nor one of somewhere else", local(job("succeeded", pushed("org_1/hello/other", someDigest)), there(true)), Decision{Act: Fail, Error: `the Build Runner named an artifact in "org_1/hello/other", not in org_1/hello/card`}},
		{"nor nothing", local(job("succeeded")), Decision{Act: Fail, Error: "the Build Runner named no artifact"}},
		{"a digest must be one", local(job("succeeded", pushed("org_1/hello/card", "sha256:../x"))), Decision{Act: Fail, Error: "the Build Runner named no artifact"}},
		{"nor another image", image(job("succeeded", pushed("org_1/hello/card", otherDigest)), there(true)), Decision{Act: Fail, Error: "the Build Runner named the image " + otherDigest + " instead of " + someDigest}},
		{"a private image without policies is all there is", image(resolved, ofAKey), Decision{Act: RecordCopy, Copied: Copied{Artifact: made}}},
		{"one with policies needs the Build Runner", image(resolved, ofAKey, ruled), Decision{Act: StartRunner}},
		{"which judges it where it was copied to", image(resolved, ofAKey, ruled, withRunner), Decision{Act: QueueJob, RunnerID: "rnr_1", Spec: &copiedSpec}},
		{"an image that policies say nothing against", image(job("succeeded", pushed("org_1/hello/card", someDigest), judged(policy.Allow)), ruled, there(true)), Decision{Act: Succeed, Artifact: made}},
		{"one that they warn of", image(job("succeeded", pushed("org_1/hello/card", someDigest), judged(policy.Warn)), ruled, there(true)), Decision{Act: Succeed, Artifact: made}},
		{"one that they deny, which the Build Runner pushed", image(job("succeeded", pushed("org_1/hello/card", someDigest), judged(policy.Deny)), ruled, there(true)),
			Decision{Act: Fail, Error: "denied by policy: image a fail: p", Judgement: said(policy.Deny)}},
		{"one that was not held against them", image(job("succeeded", pushed("org_1/hello/card", someDigest)), ruled, there(true)),
			Decision{Act: Fail, Error: "the app has policies for images, and the Build Runner did not hold the image against them: update the Build Runner, and build again"}},
		{"one that the Build Runner did not push", image(job("failed", judged(policy.Deny), func(j *Job) { j.Error = "denied" }), ruled), Decision{Act: Fail, Error: "denied", Judgement: said(policy.Deny)}},
		{"a failed job says why", local(job("failed", func(j *Job) { j.Error = "bad HCL"; j.Result.Remedy = "mend it" })), Decision{Act: Fail, Error: "bad HCL; mend it"}},
		{"a refused job too", local(job("refused")), Decision{Act: Fail, Error: "the Build Runner refused the job without saying why"}},
		{"a job of a machine that was replaced is made again", local(job("refused", differs("machine_key_id"))), Decision{Act: Again}},
		{"but not for ever", local(job("refused", differs("machine_key_id")), func(s *State) { s.Build.Provenance.Remade = maxRemade }),
			Decision{Act: Fail, Error: "the Build Runner was lost 4 times during this build"}},
		{"nor when more than the machine differs", local(job("refused", differs("machine_key_id", "spec_digest"))), Decision{Act: Fail, Error: "no such order"}},
		{"nor when nobody wants it any more", local(job("refused", differs("machine_key_id")), cancelRequested), Decision{Act: Cancel, Error: "no such order"}},
		{"a job that is gone fails", local(job("failed"), func(s *State) { s.Job = nil }), Decision{Act: Fail, Error: "job job_1 of this build is gone"}},

		{"a build without a job is cancelled at once", git(cancelRequested), Decision{Act: Cancel}},
		{"a job is asked to stop", local(job("leased"), cancelRequested), Decision{Act: StopJob}},
		{"once", local(job("leased", func(j *Job) { j.CancelRequested = true }), cancelRequested), Decision{Act: Wait}},
		{"a stopped job is the end", local(job("cancelled"), cancelRequested), Decision{Act: Cancel}},
		{"a job that nobody asked to stop failed", local(job("cancelled")), Decision{Act: Fail, Error: "the job of this build was cancelled"}},
		{"a job that failed while stopping was cancelled", local(job("failed", func(j *Job) { j.Error = "killed" }), cancelRequested), Decision{Act: Cancel, Error: "killed"}},
		{"a job that was done before keeps its artifact", local(job("succeeded", pushed("org_1/hello/card", someDigest)), cancelRequested, there(true)), Decision{Act: Succeed, Artifact: made}},

		{"a succeeded build is done", local(func(s *State) { s.Build.Status = model.BuildSucceeded }), Decision{Act: Done}},
		{"a cancelled build is done", local(cancelRequested, func(s *State) { s.Build.Status = model.BuildCancelled }), Decision{Act: Done}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Next(tc.s)); diff != "" {
				t.Errorf("Next (-want +got):\n%s", diff)
			}
		})
	}
}

// said is what a policy says of an image.
func said(a policy.Answer) *policy.Judgement {
	v := policy.Verdict{Policy: "p", Document: "image a", Result: policy.Pass}
	if a != policy.Allow {
		v.Result, v.On = policy.Fail, a
	}
	return &policy.Judgement{Engine: "e", Vendor: []policy.Verdict{v}}
}

func judged(a policy.Answer) func(*Job) { return func(j *Job) { j.Result.Judgement = said(a) } }

// ofAKey: the image is private, builder has its key, and has copied it.
func ofAKey(s *State) {
	s.Private, s.Facts.Copied = true, &Copied{Artifact: jobspec.BuiltArtifact{Repository: "org_1/hello/card", Digest: someDigest, SizeBytes: 9}}
}

// ruled: the app has a policy for the image.
func ruled(s *State) {
	s.Build.Policies = []policy.Rules{{Name: "p", Language: policy.Rego, Text: "package berth"}}
}

// An image is what its digest says, whatever it is called; other things depend on
// what the app folder says of them.
func TestResolvedDigest(t *testing.T) {
	t.Parallel()
	retagged := image(func(s *State) { s.Build.BuildDigest, s.Build.Source.Ref = someDigest, "1.3" }).Build
	if resolvedDigest(image().Build, someDigest) != resolvedDigest(retagged, someDigest) {
		t.Error("the same image under another tag is another one")
	}
	if resolvedDigest(image().Build, someDigest) == resolvedDigest(image().Build, otherDigest) {
		t.Error("two images are the same")
	}
	if resolvedDigest(image().Build, someDigest) == resolvedDigest(image(ruled).Build, someDigest) {
		t.Error("an image that a policy was not asked about is taken for one that it was")
	}
	other := git(func(s *State) { s.Build.BuildDigest = someDigest }).Build
	if resolvedDigest(git().Build, someCommit) == resolvedDigest(other, someCommit) {
		t.Error("the same commit with other build keys is the same")
	}
}

func TestRepositoryOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, app, component, want string }{
		{"names", "hello", "card", "org_1/hello/card"},
		{"dots, dashes and underscores", "my-app", "a.b__c-d", "org_1/my-app/a.b__c-d"},
		{"what registries do not take is named by id", "hello", "Card", "org_1/hello/cmp_1"},
		{"nothing climbs out", "..", "a/../../b", "org_1/app_1/cmp_1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := repositoryOf(Build{OrgID: "org_1", AppID: "app_1", App: tc.app, ComponentID: "cmp_1", Component: tc.component})
			if got != tc.want {
				t.Errorf("repositoryOf(%q, %q) = %q, want %q", tc.app, tc.component, got, tc.want)
			}
		})
	}
}

// The Build Runner gets what the app says of kustomize.
func TestKustomizeOfARevision(t *testing.T) {
	t.Parallel()
	revision, err := json.Marshal(appconfig.Component{KubernetesManifest: &appconfig.KubernetesManifest{Kustomize: &appconfig.Kustomize{
		Path: "overlays/a", Patches: []string{"p.yaml"}, EnableHelm: true, LoadRestrictor: "none",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := &jobspec.Kustomize{Path: "overlays/a", Patches: []string{"p.yaml"}, EnableHelm: true, LoadRestrictor: "none"}
	spec := specOf(Build{Kustomize: kustomizeOf(revision)}, "https://example.com/a/b")
	if diff := cmp.Diff(want, spec.Source.Kustomize); diff != "" {
		t.Errorf("kustomize (-want +got):\n%s", diff)
	}
	if none := kustomizeOf([]byte(`{"kubernetes_manifest": {"namespace": "a"}}`)); none != nil {
		t.Errorf("a manifest without kustomize has %v", none)
	}
}

// The Build Runner gets what the app says of npm.
func TestPulumiOfARevision(t *testing.T) {
	t.Parallel()
	revision, err := json.Marshal(appconfig.Component{Pulumi: &appconfig.Pulumi{Runtime: "nodejs", NpmScripts: true}})
	if err != nil {
		t.Fatal(err)
	}
	spec := specOf(Build{Pulumi: pulumiOf(revision)}, "https://example.com/a/b")
	if diff := cmp.Diff(&jobspec.PulumiBuild{NpmScripts: true}, spec.Source.Pulumi); diff != "" {
		t.Errorf("pulumi (-want +got):\n%s", diff)
	}
	if none := pulumiOf([]byte(`{"terraform_module": {}}`)); none != nil {
		t.Errorf("a module has %v", none)
	}
}

// Modules that a branch, a tag or a range leads to may be others today: the Build Runner
// looks, and is told what it was.
func TestModulesThatMoveAreFetchedAgain(t *testing.T) {
	t.Parallel()
	fixed := jobspec.Module{Source: "git::https://h/x.git?ref=" + someCommit, From: "https://h/x.git", Commit: someCommit}
	moving := jobspec.Module{Source: "git::https://h/x.git?ref=v1", From: "https://h/x.git", Commit: someCommit, Moves: true}
	with := func(m jobspec.Module) func(*State) {
		return func(s *State) { s.Reusable[0].Provenance.Modules = []jobspec.Module{m} }
	}
	if d := Next(local(resolved, staged, withRunner, reusable, there(true), with(fixed))); d.Act != Reuse {
		t.Errorf("with a module of a commit: %s, want %s", d.Act, Reuse)
	}
	d := Next(local(resolved, staged, withRunner, reusable, there(true), with(moving)))
	if d.Act != QueueJob || !cmp.Equal(d.Spec.Source.Modules, []jobspec.Module{moving}) {
		t.Errorf("with a module of a tag: %+v, want a job that is told of it", d)
	}
}
