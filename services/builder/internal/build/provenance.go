package build

import (
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
)

// Provenance says how an artifact came to be, as stored in builds.provenance
// and shown by the API. A build that took over an artifact shows the provenance
// of the build that made it.
type Provenance struct {
	BuildID        string           `json:"build_id,omitempty"`
	ResolvedDigest string           `json:"resolved_digest,omitempty"`
	Source         ProvenanceSource `json:"source"`
	// RunnerID, JobID and Attempt say who did it; the log of the attempt has
	// the rest.
	RunnerID string `json:"runner_id,omitempty"`
	JobID    string `json:"job_id,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	// CopiedBy is copiedByBuilder for a private image, which no runner gets the key of.
	CopiedBy string `json:"copied_by,omitempty"`
	// Remade is how often the build was begun again because its machine was lost.
	Remade int `json:"remade,omitempty"`
	// Tool is what the engine used.
	Tool *jobspec.Tool `json:"tool,omitempty"`
	// Modules are what the build fetched from elsewhere.
	Modules []jobspec.Module `json:"modules,omitempty"`
	// Attestations hang on the artifact, signed by SignedBy.
	Attestations []jobspec.Attestation `json:"attestations,omitempty"`
	SignedBy     string                `json:"signed_by,omitempty"`
	// Judgement is what the app's policies said of the image, also of one that they denied.
	Judgement  *policy.Judgement `json:"judgement,omitempty"`
	StartedAt  time.Time         `json:"started_at,omitzero"`
	FinishedAt time.Time         `json:"finished_at,omitzero"`
}

// ProvenanceSource is what the artifact was made from, exactly.
type ProvenanceSource struct {
	Kind string `json:"kind,omitempty"`
	// Digest is of the uploaded archive, Archive the artifact made of it.
	Digest  string            `json:"digest,omitempty"`
	Archive *jobspec.Artifact `json:"archive,omitempty"`
	// Repo and Ref are as the vendor wrote them, Commit is what they meant: of a chart
	// its version and digest.
	Repo      string `json:"repo,omitempty"`
	Ref       string `json:"ref,omitempty"`
	Commit    string `json:"commit,omitempty"`
	Directory string `json:"directory,omitempty"`
	// Before is the digest that this version of a chart had in an earlier build: its
	// repository replaced it.
	Before string `json:"before,omitempty"`
}

const copiedByBuilder = "builder"

// provenanceOfCopy is that of a build whose image builder copied.
func provenanceOfCopy(b Build, c Copied) Provenance {
	p := provenanceOf(b, Job{Result: jobspec.Result{StartedAt: c.StartedAt, FinishedAt: c.FinishedAt}})
	p.CopiedBy = copiedByBuilder
	return p
}

// provenanceOf is that of a build whose job has succeeded.
func provenanceOf(b Build, job Job) Provenance {
	p := Provenance{
		BuildID: b.ID, ResolvedDigest: b.Resolved,
		Source: ProvenanceSource{
			Kind: string(b.Source.Kind), Digest: b.Source.Digest, Archive: b.Provenance.Source.Archive,
			Repo: b.Source.Repo, Ref: b.Source.Ref, Commit: b.Commit, Directory: b.Source.Directory, Before: b.Before,
		},
		RunnerID: job.RunnerID, JobID: job.ID, Attempt: job.Attempt, Remade: b.Provenance.Remade, Tool: job.Result.Tool, Modules: job.Result.Modules,
		StartedAt: job.Result.StartedAt, FinishedAt: job.Result.FinishedAt,
	}
	p.Judgement = job.Result.Judgement
	if a := job.Result.Artifact; a != nil {
		p.Attestations, p.SignedBy = a.Attestations, a.SignedBy
	}
	return p
}
