package build

import (
	"fmt"
	"regexp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/internal/model"
)

// Act is what is to be done.
type Act string

// Acts that look outside, and write nothing.
const (
	Resolve     Act = "resolve"      // find the commit of the source
	Look        Act = "look"         // ask the registry for Artifact
	Stage       Act = "stage"        // push a source that travels as an archive
	Copy        Act = "copy"         // copy a private image, which builder has the key of
	StartRunner Act = "start_runner" // see that the org's Build Runner lives
)

// Acts that write, in the transaction in which they were decided.
const (
	RecordSource  Act = "record_source"  // Commit, Resolved
	RecordArchive Act = "record_archive" // Archive
	QueueJob      Act = "queue_job"      // Spec, for RunnerID
	StopJob       Act = "stop_job"       // ask for the end of the job
	Again         Act = "again"          // forget the job: its machine is gone
	Reuse         Act = "reuse"          // succeed with Made
	Succeed       Act = "succeed"        // with Artifact, which the job made
	RecordCopy    Act = "record_copy"    // succeed with Copied
	Fail          Act = "fail"           // Error
	Cancel        Act = "cancel"         // the end, on request
	Note          Act = "note"           // Error, and try again later
)

// Acts that do nothing.
const (
	Wait Act = "wait" // somebody will wake us
	Done Act = "done" // the build has ended
)

// moves says whether the act puts the build into another state, for which
// others wait.
func (a Act) moves() bool {
	switch a {
	case QueueJob, Again, Reuse, Succeed, RecordCopy, Fail, Cancel:
		return true
	}
	return false
}

// Decision is one act with what it needs.
type Decision struct {
	Act      Act
	Commit   string                // RecordSource
	Resolved string                // RecordSource
	Archive  *jobspec.Artifact     // RecordArchive
	RunnerID string                // QueueJob
	Spec     *jobspec.Spec         // QueueJob; its JobID is given by the worker
	Made     Made                  // Reuse
	Artifact jobspec.BuiltArtifact // Look, Succeed
	Copied   Copied                // RecordCopy
	Error    string                // Fail, Note; Cancel, when the job failed on the way
	// Judgement is what policies said of an image, with Fail.
	Judgement *policy.Judgement
}

// Next decides the one thing to do now for a build. It does no I/O.
func Next(s State) Decision {
	b := s.Build
	switch {
	case b.Status.Ended():
		return Decision{Act: Done}
	case b.JobID != "":
		return follow(s)
	case b.CancelRequested:
		return Decision{Act: Cancel}
	case b.SourceFault != "":
		return Decision{Act: Fail, Error: Trouble{Text: b.SourceFault, Remedy: correct(b, "")}.String()}
	case s.Facts.Trouble != nil:
		return giveUpOrNote(*s.Facts.Trouble, s)
	case b.Resolved == "":
		return resolve(s)
	}
	if made, ok := s.usable(); ok {
		if !s.Facts.There[made.Artifact.Digest] {
			return Decision{Act: Look, Artifact: made.Artifact}
		}
		return Decision{Act: Reuse, Made: made}
	}
	return handOver(s)
}

// resolve finds out what exactly is to be built. A local source is exact as it
// is.
func resolve(s State) Decision {
	b, commit := s.Build, s.Facts.Commit.Hash
	if b.Source.Moves() && commit == "" {
		return Decision{Act: Resolve}
	}
	return Decision{Act: RecordSource, Commit: commit, Resolved: resolvedDigest(b, commit)}
}

// handOver has the Build Runner do it.
func handOver(s State) Decision {
	b := s.Build
	// The address that is cloned is not stored: the operator may change it. So
	// another worker, or a later one, asks again.
	staged := b.Provenance.Source.Archive != nil || s.Facts.Archive != nil
	asks := b.Source.Kind == source.KindGit || b.Source.Kind == source.KindChart && !staged
	if asks && s.Facts.Commit.URL == "" {
		return Decision{Act: Resolve}
	}
	travels := b.Source.Kind == source.KindLocal || b.Source.Kind == source.KindChart || b.Source.Kind == source.KindOCI || s.Facts.Commit.OnDisk()
	switch {
	case travels && b.Provenance.Source.Archive == nil && s.Facts.Archive == nil:
		return Decision{Act: Stage}
	case travels && b.Provenance.Source.Archive == nil:
		return Decision{Act: RecordArchive, Archive: s.Facts.Archive}
	}
	switch copied := s.Facts.Copied; {
	case s.Private && copied == nil:
		return Decision{Act: Copy}
	case s.Private && len(b.Policies) == 0:
		return Decision{Act: RecordCopy, Copied: *copied}
	}
	if s.Facts.RunnerID == "" {
		return Decision{Act: StartRunner}
	}
	if s.MachineKey == nil || !s.Facts.RunnerReady {
		return Decision{Act: Note, Error: "waiting for the Build Runner to start"}
	}
	spec := specOf(b, s.Facts.Commit.URL)
	spec.Source.Modules = s.lastModules()
	if s.Facts.Copied != nil { // which is only held against policies
		spec.Source.Kind, spec.Source.Copied = jobspec.SourceCopied, &s.Facts.Copied.Artifact
	}
	return Decision{Act: QueueJob, RunnerID: s.Facts.RunnerID, Spec: &spec}
}

var artifactDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// follow looks what became of the job. A Build Runner works for one org only,
// and yet is not believed: what it says it pushed must be where it had to be.
func follow(s State) Decision {
	b, job := s.Build, s.Job
	if job == nil {
		return Decision{Act: Fail, Error: fmt.Sprintf("job %s of this build is gone", b.JobID)}
	}
	switch job.State {
	case model.JobQueued, model.JobLeased:
		if b.CancelRequested && !job.CancelRequested {
			return Decision{Act: StopJob}
		}
		return Decision{Act: Wait}
	case model.JobSucceeded:
		return accept(s, *job)
	case model.JobCancelled:
		if b.CancelRequested {
			return Decision{Act: Cancel}
		}
		return Decision{Act: Fail, Error: "the job of this build was cancelled"}
	}
	if b.CancelRequested {
		return Decision{Act: Cancel, Error: jobError(*job)}
	}
	switch {
	case otherMachine(*job) && b.Provenance.Remade < maxRemade:
		return Decision{Act: Again}
	case otherMachine(*job):
		return Decision{Act: Fail, Error: fmt.Sprintf("the Build Runner was lost %d times during this build", maxRemade+1)}
	}
	return Decision{Act: Fail, Error: jobError(*job), Judgement: job.Result.Judgement}
}

// maxRemade is how often a build is begun again because its machine was lost. One
// that ends each machine it comes to (it fills the disk, say) fails.
const maxRemade = 3

// otherMachine: the runner refused the order because it names the machine before,
// and for no other reason.
func otherMachine(job Job) bool {
	differs := job.Result.Differs
	return job.State == model.JobRefused && len(differs) == 1 && differs[0].Field == "machine_key_id"
}

func accept(s State, job Job) Decision {
	made := job.Result.Artifact
	if made == nil || !artifactDigest.MatchString(made.Digest) {
		return Decision{Act: Fail, Error: "the Build Runner named no artifact"}
	}
	if want := repositoryOf(s.Build); made.Repository != want {
		return Decision{Act: Fail, Error: fmt.Sprintf("the Build Runner named an artifact in %q, not in %s", made.Repository, want)}
	}
	if want := s.Build.Source.Content(s.Build.Commit); s.Build.Source.Kind == source.KindImage && made.Digest != want {
		return Decision{Act: Fail, Error: fmt.Sprintf("the Build Runner named the image %s instead of %s", made.Digest, want)}
	}
	if text := denied(s.Build, job.Result.Judgement); text != "" {
		return Decision{Act: Fail, Error: text, Judgement: job.Result.Judgement}
	}
	there, asked := s.Facts.There[made.Digest]
	switch {
	case !asked:
		return Decision{Act: Look, Artifact: *made}
	case !there:
		return Decision{Act: Fail, Error: fmt.Sprintf("the Build Runner reported artifact %s, but it is not in the registry", made.Digest)}
	}
	return Decision{Act: Succeed, Artifact: *made}
}

// denied says why an image may not be used, by the app's policies; "" when it may. The Build
// Runner fails what they deny: this is for one that does not hold images against them.
func denied(b Build, said *policy.Judgement) string {
	switch {
	case len(b.Policies) == 0:
		return ""
	case said == nil:
		return "the app has policies for images, and the Build Runner did not hold the image against them: update the Build Runner, and build again"
	}
	return said.Denies()
}

func jobError(job Job) string {
	text := job.Error
	if text == "" {
		text = job.Result.Error
	}
	if text == "" {
		text = "the Build Runner " + string(job.State) + " the job without saying why"
	}
	if job.Result.Remedy != "" {
		text += "; " + job.Result.Remedy
	}
	return text
}

// slowTries is how often somebody is asked who takes long to say nothing.
const slowTries = 2

func giveUpOrNote(t Trouble, s State) Decision {
	last := s.LastTry || t.Slow && s.Try >= slowTries
	if t.Passing && !last {
		return Decision{Act: Note, Error: t.Text + "; trying again"}
	}
	return Decision{Act: Fail, Error: t.String()}
}
