package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// maxPackages bounds what an engine leaves about the packages of an artifact, in bytes.
const maxPackages = 8 << 20

// attestFolder hangs provenance and SBOM on an artifact that was packed and pushed. They are
// made of the signed order and of the result, so that an agent that is started in the middle
// makes the same again.
func (j *job) attestFolder(ctx context.Context, to oci.Remote, result *jobspec.Result) error {
	subject := digest.Digest(result.Artifact.Digest)
	slsa, err := attest.About(result.Artifact.Repository, subject, attest.SLSA, j.provenance(*result))
	if err != nil {
		return err
	}
	statements := []attest.Statement{slsa}
	var contents attest.Contents
	found, err := j.dir.ReadOutJSON("out/packages.json", maxPackages, &contents)
	if err != nil {
		return err
	}
	if found {
		sbom, err := attest.About(result.Artifact.Repository, subject, attest.SPDX, contents.Document(result.Artifact.Repository, subject, result.FinishedAt))
		if err != nil {
			return err
		}
		statements = append(statements, sbom)
	}
	for _, s := range statements {
		raw, err := attest.Encode(s)
		if err != nil {
			return err
		}
		if err := j.hang(ctx, to, result, signing{subject: subject, statement: raw, kind: s.PredicateType}); err != nil {
			return err
		}
	}
	return nil
}

// attestImage signs what the engine says of an image that it built, and hangs it on as well:
// only statements about this image and its platforms, and of this build.
func (j *job) attestImage(ctx context.Context, root *os.Root, to oci.Remote, result *jobspec.Result) error {
	said, err := oci.ReadStatements(ctx, root, digest.Digest(result.Artifact.Digest), attest.StatementType)
	if err != nil {
		return fmt.Errorf("statements of the engine: %w", err)
	}
	for _, one := range said {
		s, err := attest.ReadStatement(one.Data)
		if err != nil {
			return fmt.Errorf("statement of the engine: %w", err)
		}
		if err := j.ownWord(s, one.Subject); err != nil {
			return fmt.Errorf("statement of the engine about %s: %w", one.Subject, err)
		}
		if err := j.hang(ctx, to, result, signing{subject: one.Subject, statement: one.Data, kind: s.PredicateType}); err != nil {
			return err
		}
	}
	return nil
}

// ownWord says what keeps a statement of the engine from being signed.
func (j *job) ownWord(s attest.Statement, subject digest.Digest) error {
	if !s.Names(subject) || len(s.Subject) != 1 {
		return errors.New("it is about something else")
	}
	switch s.PredicateType {
	case attest.SPDX:
		return nil
	case attest.SLSA:
		var p attest.Provenance
		if err := json.Unmarshal(s.Predicate, &p); err != nil {
			return err
		}
		if p.RunDetails.Builder.ID != attest.BuilderID(j.spec.OrgID) || p.RunDetails.Metadata.InvocationID != j.spec.BuildID {
			return errors.New("it is of another build")
		}
		return nil
	}
	return fmt.Errorf("its type %.80q is none of a build", s.PredicateType)
}

type signing struct {
	subject   digest.Digest
	statement []byte
	kind      string // of the predicate
}

// hang signs a statement and pushes it as a referrer of its subject.
func (j *job) hang(ctx context.Context, to oci.Remote, result *jobspec.Result, s signing) error {
	bundle, err := attest.SignRaw(j.deps.Keys.Sign, s.statement)
	if err != nil {
		return err
	}
	var made digest.Digest
	err = j.insist(ctx, "what hangs on the artifact", func() (err error) {
		made, err = to.Refer(ctx, s.subject, oci.Referrer{Type: attest.BundleType, Data: bundle, Annotations: map[string]string{
			attest.AnnotationContent: attest.ContentDSSE, attest.AnnotationPredicate: s.kind,
		}})
		return err
	})
	if err != nil {
		return err
	}
	a := result.Artifact
	a.Attestations = append(a.Attestations, jobspec.Attestation{PredicateType: s.kind, Digest: made.String(), Subject: s.subject.String()})
	a.SignedBy = capsule.EncodePublicKey(j.deps.Keys.Public())
	j.remark(fmt.Sprintf("signed %s of %s: %s", s.kind, s.subject, made))
	return nil
}

// provenance is what the agent knows of a build by the order that it obeyed.
func (j *job) provenance(result jobspec.Result) attest.Provenance {
	var p attest.Provenance
	s := j.spec.Source
	p.BuildDefinition.BuildType = "https://berth.dev/" + string(j.spec.Kind) + "/v1"
	source := attest.Resource{Name: "source"}
	parameters := map[string]any{"kind": string(j.spec.Kind), "source_kind": s.Kind}
	add := func(name, value string) {
		if value != "" {
			parameters[name] = value
		}
	}
	add("repo", withoutUser(s.Repo))
	add("ref", s.Ref)
	add("directory", s.Directory)
	add("tool", s.Tool)
	if s.Kustomize != nil {
		parameters["kustomize"] = s.Kustomize
	}
	if s.Pulumi != nil {
		parameters["pulumi"] = s.Pulumi
	}
	switch {
	case s.Chart != nil:
		parameters["chart"] = s.Chart
		source.URI, source.Digest = withoutUser(s.Repo)+"#"+s.Chart.Name+"@"+s.Chart.Version, attest.DigestSet(digest.Digest(s.Chart.Digest))
	case s.Commit != "" && s.Repo != "":
		source.URI, source.Digest = "git+"+withoutUser(s.Repo), map[string]string{"gitCommit": s.Commit}
	case s.Archive != nil:
		source.URI, source.Digest = "oci:"+s.Archive.Repository, attest.DigestSet(digest.Digest(s.Archive.Digest))
	}
	p.BuildDefinition.ExternalParameters = parameters
	p.BuildDefinition.ResolvedDependencies = []attest.Resource{source}
	for _, m := range result.Modules {
		r := attest.Resource{Name: m.Source, URI: withoutUser(m.From)}
		switch {
		case m.Commit != "":
			r.Digest = map[string]string{"gitCommit": m.Commit}
		case digest.Digest(m.Digest).Validate() == nil:
			r.Digest = attest.DigestSet(digest.Digest(m.Digest))
		}
		p.BuildDefinition.ResolvedDependencies = append(p.BuildDefinition.ResolvedDependencies, r)
	}
	p.RunDetails.Builder.ID = attest.BuilderID(j.spec.OrgID)
	p.RunDetails.Builder.Version = map[string]string{"berth-runner": j.deps.Version}
	if t := result.Tool; t != nil {
		p.RunDetails.Builder.Version[t.Name] = t.Version
	}
	p.RunDetails.Metadata.InvocationID = j.spec.BuildID
	p.RunDetails.Metadata.StartedOn, p.RunDetails.Metadata.FinishedOn = result.StartedAt.UTC(), result.FinishedAt.UTC()
	return p
}

// withoutUser takes a user's name and password out of an address.
func withoutUser(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return address
	}
	host, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	return scheme + "://" + host + "/" + path
}

// attest hangs on the artifact of a build what is known of it, where the build made it:
// images of others are copied with what their makers said.
func (j *job) attest(ctx context.Context, result *jobspec.Result) error {
	if j.spec.Kind == jobspec.KindContainerImage {
		return nil
	}
	to, err := j.deps.Registry.Remote(ctx, j.spec.Source.Push, runnerapi.RegistryActionPush)
	if err != nil {
		return fmt.Errorf("push what hangs on the artifact: %w", err)
	}
	if j.kind().Artifact == jobspec.ArtifactFolder {
		return j.attestFolder(ctx, to, result)
	}
	root, err := j.dir.OpenOut("out/image")
	if err != nil {
		return fmt.Errorf("image of the engine: %w", err)
	}
	defer func() { _ = root.Close() }()
	return j.attestImage(ctx, root, to, result)
}
