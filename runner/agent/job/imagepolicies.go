package job

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/imagefacts"
	"github.com/berth-dev/berth/runner/agent/imagetrust"
)

// judgeBuild holds the vendor's policies against the image that a build left, before it is
// pushed. One that they deny stays here, and fails the build.
func (j *job) judgeBuild(ctx context.Context, root *os.Root, image digest.Digest, result *jobspec.Result) error {
	if len(j.spec.Policies) == 0 || j.deps.Guards == nil {
		return nil // who ordered it misses the judgement
	}
	var metadata policy.ImageMetadata
	var err error
	if j.spec.Kind == jobspec.KindDockerBuild {
		metadata, err = factsOfMade(ctx, root, image)
	} else {
		metadata, err = j.factsOfCopy(ctx, imagefacts.In(root), image)
	}
	if err != nil {
		return err
	}
	return j.judgeImage(ctx, image, metadata, result)
}

// judgeCopied holds the vendor's policies against a private image that builder has copied to
// the org's registry. Only what hangs on it is read.
func (j *job) judgeCopied(ctx context.Context, result *jobspec.Result) error {
	copied := j.spec.Source.Copied
	if copied == nil || j.deps.Guards == nil {
		return refuse(jobspec.OutcomeRefused, "", "the order names no image that was copied")
	}
	image := digest.Digest(copied.Digest)
	if err := image.Validate(); err != nil {
		return refuse(jobspec.OutcomeRefused, "", "the order names an image %q: %v", copied.Digest, err)
	}
	var metadata policy.ImageMetadata
	err := j.insist(ctx, "what hangs on the image", func() error {
		from, err := j.deps.Registry.Remote(ctx, j.spec.Source.Push, runnerapi.RegistryActionPull)
		if err == nil {
			metadata, err = j.factsOfCopy(ctx, from, image)
		}
		return err
	})
	if err != nil {
		return err
	}
	result.Artifact = copied
	return j.judgeImage(ctx, image, metadata, result)
}

// judgeImage asks the policy engine about the image of a build.
func (j *job) judgeImage(ctx context.Context, image digest.Digest, metadata policy.ImageMetadata, result *jobspec.Result) error {
	body := policy.Image{Image: j.spec.Source.Image, Tag: j.spec.Source.Ref, Digest: image.String(), Metadata: metadata}
	if j.spec.Kind == jobspec.KindDockerBuild {
		made := jobspec.Spec{Work: jobspec.Work{DockerBuild: &jobspec.DockerBuild{Commit: j.spec.Source.Commit}}, Artifact: &jobspec.Artifact{Digest: body.Digest}}
		body.Image, body.Tag = j.spec.Source.Push, made.ImageTag()
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	document := policy.Document{Form: policy.FormImage, Of: string(j.spec.Kind), Name: "image " + body.Image, Body: raw}
	judgement := j.deps.Guards.Judge(ctx, guards.Plan{Case: policy.Case{Rules: j.spec.Policies, Documents: []policy.Document{document}}}).Judgement
	j.redact(&judgement)
	if denial := judgement.Denies(); denial != "" {
		r := refuse(jobspec.OutcomeFailed, "change the image, or the policy in the app folder", "%s", denial)
		r.result.Reason, r.result.Judgement = jobspec.ReasonNeedsChange, &judgement
		return r
	}
	for _, v := range policy.Against(judgement.Vendor, policy.Deny) {
		j.remark("policies: " + v.String())
	}
	j.remark(fmt.Sprintf("%d policies were held against the image", len(j.spec.Policies)))
	result.Judgement = &judgement
	return nil
}

// factsOfCopy is what is known of somebody else's image: it counts as signed when the app's
// image_key has signed it.
func (j *job) factsOfCopy(ctx context.Context, from imagefacts.Source, image digest.Digest) (policy.ImageMetadata, error) {
	var texts []string
	if key := j.spec.Source.ImageKey; key != "" {
		texts = append(texts, key)
	}
	keys, err := imagefacts.ParseKeys(texts)
	if err != nil {
		return policy.ImageMetadata{}, err
	}
	return imagefacts.Of(ctx, from, image, keys)
}

// factsOfMade is what is known of an image that this machine built. It signs what the engine
// says of the image, the provenance among it, so such an image counts as signed.
func factsOfMade(ctx context.Context, root *os.Root, image digest.Digest) (policy.ImageMetadata, error) {
	said, err := oci.ReadStatements(ctx, root, image, attest.StatementType)
	if err != nil {
		return policy.ImageMetadata{}, fmt.Errorf("statements of the engine: %w", err)
	}
	var statements []attest.Said
	signed := false
	for _, one := range said {
		s, err := attest.ReadStatement(one.Data)
		if err != nil {
			return policy.ImageMetadata{}, fmt.Errorf("statement of the engine: %w", err)
		}
		signed = signed || s.PredicateType == attest.SLSA
		statements = append(statements, attest.Said{Statement: s, Raw: one.Data})
	}
	return imagefacts.Metadata(signed, statements), nil
}

// imageDocuments are the documents of a planned image as each side sees it: the vendor's
// policies with keys of the order, the customer's guardrails with those of trust.json alone.
func (j *job) imageDocuments(ctx context.Context, documents []policy.Document) ([]policy.Document, error) {
	if j.spec.Artifact == nil || len(documents) == 0 {
		return documents, nil
	}
	root, err := os.OpenRoot(j.deps.Layout.Dir())
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	vendors, err := imagefacts.ParseKeys(j.spec.ImageKeys)
	if err != nil {
		return nil, err
	}
	customers, err := j.trustedFor(*j.spec.Artifact)
	if err != nil {
		return nil, err
	}
	image, err := imagefacts.Read(ctx, imagefacts.In(root), digest.Digest(j.spec.Artifact.Digest))
	if err != nil {
		return nil, err
	}
	return guardrail.ImageDocuments(documents, []guardrail.Seen{
		{Side: policy.SideVendor, Image: j.nameOfImage(*j.spec.Artifact), Metadata: image.By(vendors)},
		{Side: policy.SideCustomer, Metadata: image.By(customers)},
	})
}

// trustedFor are the keys that the customer trusts for an image.
func (j *job) trustedFor(a jobspec.Artifact) (imagefacts.Keys, error) {
	trust, err := j.deps.Dir.LoadTrust()
	if err != nil {
		return imagefacts.Keys{}, err
	}
	needed, err := imagetrust.For(trust.Images, j.nameOfImage(a))
	if err != nil {
		return imagefacts.Keys{}, nil //nolint:nilerr // no rule is for it, so no key is: it was refused before
	}
	return imagefacts.Keys{Keys: needed.Keys}, nil
}
