package buildkit

import (
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
)

// The types below are in-toto's Statement (v1) and SLSA's provenance (v1), as far as
// they are filled in.

// Resource is a resource descriptor: something that the build was made from.
type Resource = attest.Resource

// statement says something about an image.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     any        `json:"predicate"`
}

func about(name string, image digest.Digest, predicate string, v any) statement {
	return statement{
		Type:          "https://in-toto.io/Statement/v1",
		Subject:       []Resource{{Name: name, Digest: attest.DigestSet(image)}},
		PredicateType: predicate, Predicate: v,
	}
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string             `json:"buildType"`
		ExternalParameters   externalParameters `json:"externalParameters"`
		InternalParameters   internalParameters `json:"internalParameters"`
		ResolvedDependencies []Resource         `json:"resolvedDependencies,omitempty"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID      string            `json:"id"`
			Version map[string]string `json:"version"`
		} `json:"builder"`
		Metadata struct {
			InvocationID string    `json:"invocationId"`
			StartedOn    time.Time `json:"startedOn"`
			FinishedOn   time.Time `json:"finishedOn"`
		} `json:"metadata"`
	} `json:"runDetails"`
}

// externalParameters are what the vendor wrote. Of secrets these are the names.
type externalParameters struct {
	Source     Resource          `json:"source"`
	Dockerfile string            `json:"dockerfile"`
	Context    string            `json:"context,omitempty"`
	Target     string            `json:"target,omitempty"`
	Args       map[string]string `json:"args,omitempty"`
	EnvVars    map[string]string `json:"env_vars,omitempty"`
	Platforms  []string          `json:"platforms,omitempty"`
	Secrets    []string          `json:"secrets,omitempty"`
}

// internalParameters are what the builder decided.
type internalParameters struct {
	Network         string `json:"network"`
	SourceDateEpoch int64  `json:"source_date_epoch"`
}

// buildType names what externalParameters mean: docs/guides/docker-builds.md says it.
const buildType = "https://berth.dev/docker_build/v1"

func newStatement(o Origin, image digest.Digest) statement {
	var p provenance
	p.BuildDefinition.BuildType = buildType
	p.BuildDefinition.ExternalParameters = externalParameters{
		Source: o.Source, Dockerfile: o.Docker.Dockerfile, Context: o.Docker.Context, Target: o.Docker.Target,
		Args: o.Docker.Args, EnvVars: o.Docker.EnvVars, Platforms: o.Docker.Platforms, Secrets: o.Docker.Secrets,
	}
	p.BuildDefinition.InternalParameters = internalParameters{Network: "default", SourceDateEpoch: Epoch.Unix()}
	if o.NoNetwork {
		p.BuildDefinition.InternalParameters.Network = "none"
	}
	p.BuildDefinition.ResolvedDependencies = slices.Concat([]Resource{o.Source}, o.Bases)
	p.RunDetails.Builder.ID = o.Builder
	p.RunDetails.Builder.Version = map[string]string{"buildkit": o.BuildKit}
	p.RunDetails.Metadata.InvocationID = o.Build
	p.RunDetails.Metadata.StartedOn, p.RunDetails.Metadata.FinishedOn = o.Started.Truncate(time.Second), o.Finished.Truncate(time.Second)
	return about(o.Name, image, attest.SLSA, p)
}
