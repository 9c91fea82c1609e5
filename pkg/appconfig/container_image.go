package appconfig

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/attest"
)

// ContainerImage holds the keys of a component of type container_image, also
// called external_image, in addition to those of every component: an image that
// somebody else builds. Its tag is resolved at each sync; the image is copied,
// by digest, into the registry of each install.
type ContainerImage struct {
	// An image that is read without credentials; one of these two must be given.
	Public *PublicImage `toml:"public" json:"public,omitempty" digest:"build"`
	// An image in a registry of AWS.
	ECR *ECRImage `toml:"aws_ecr" json:"aws_ecr,omitempty" digest:"build"`
}

// PublicImage is an image that is read without credentials.
type PublicImage struct {
	// The name without tag: "host/path".
	ImageURL string `toml:"image_url" json:"image_url" rule:"required"`
	// The tag; needed unless there is an update_policy, which decides where there is one.
	Tag string `toml:"tag" json:"tag,omitempty"`
	// A range of versions; each build takes the newest tag within it. Tags that are no whole version do not count, nor prereleases that the range does not name.
	UpdatePolicy string `toml:"update_policy" json:"update_policy,omitempty"`
}

// ECRImage is an image in a registry of AWS (ECR). Its builder reads it with an
// identity of its own, which builder's operator allows.
type ECRImage struct {
	// The name without tag: "host/path".
	ImageURL string `toml:"image_url" json:"image_url" rule:"required"`
	// The tag; needed unless there is an update_policy.
	Tag string `toml:"tag" json:"tag,omitempty"`
	// The registry's region; by default the one in its name.
	Region string `toml:"region" json:"region,omitempty"`
	// The role that reads it. It trusts the builder's identity, with the org's id as external id; by default the builder's identity itself reads it.
	IAMRoleARN string `toml:"iam_role_arn" json:"iam_role_arn,omitempty"`
	// A range of versions; each build takes the newest tag within it. Tags that are no whole version do not count, nor prereleases that the range does not name.
	UpdatePolicy string `toml:"update_policy" json:"update_policy,omitempty"`
}

// source is where a build looks: an update_policy decides over a tag.
func (i *PublicImage) source() Source {
	if i.UpdatePolicy != "" {
		return Source{Kind: SourceImage, Repo: i.ImageURL, Ref: i.UpdatePolicy, Range: true}
	}
	return Source{Kind: SourceImage, Repo: i.ImageURL, Ref: i.Tag}
}

// source is where a build looks.
func (i *ECRImage) source() Source {
	public := PublicImage{ImageURL: i.ImageURL, Tag: i.Tag, UpdatePolicy: i.UpdatePolicy}
	src := public.source()
	src.ECR = &SourceECR{Region: i.Region, IAMRoleARN: i.IAMRoleARN}
	return src
}

func (i *ContainerImage) check(ch *checker, c *Component) {
	switch {
	case i.ECR != nil && i.Public != nil:
		ch.Add(place.Error, place.CodeExclusive, c.At.Below("aws_ecr"), "only one of public and aws_ecr is possible")
	case i.ECR != nil:
		ch.image(c.At.Below("aws_ecr"), i.ECR.ImageURL, i.ECR.Tag, i.ECR.UpdatePolicy)
		i.ECR.check(ch, c)
	case i.Public != nil:
		ch.image(c.At.Below("public"), i.Public.ImageURL, i.Public.Tag, i.Public.UpdatePolicy)
	case c.SourceFile == "" && !ch.Misspelt(c.At, "public", "aws_ecr"):
		ch.Add(place.Error, place.CodeMissing, c.At, "no image is given")
	}
}

var (
	roleARN   = regexp.MustCompile(`^arn:[a-z0-9-]+:iam::\d{12}:role/[\w+=,.@/-]+$`)
	awsRegion = regexp.MustCompile(`^[a-z]{2,}(?:-[a-z]+)+-\d+$`)
)

func (i *ECRImage) check(ch *checker, c *Component) {
	at := c.At.Below("aws_ecr")
	if i.IAMRoleARN != "" && !roleARN.MatchString(i.IAMRoleARN) {
		ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, at.Below("iam_role_arn"), "iam_role_arn %q is not the ARN of a role", i.IAMRoleARN).
			WithRemedy(`write it as "arn:aws:iam::123456789012:role/NAME"`))
	}
	if i.Region != "" && !awsRegion.MatchString(i.Region) {
		ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, at.Below("region"), "region %q is not a region of AWS", i.Region).
			WithRemedy(`write it as "eu-central-1"`))
	}
}

// image checks the name of an image and how its tag is found.
func (c *checker) image(at place.Place, url, tag, policy string) {
	if policy != "" {
		if _, err := semver.NewConstraint(policy); err != nil {
			c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, at.Below("update_policy"), "update_policy %q is not a range of versions", policy).
				WithRemedy(`write a range such as "^1.4" or ">= 1.4, < 2"`))
		}
	}
	switch {
	case tag == "" && policy == "" && c.Misspelt(at, "tag", "update_policy"):
	case tag == "" && policy == "":
		c.Add(place.Error, place.CodeMissing, at, "tag is missing")
	case strings.Contains(url, "://") || strings.Contains(url, "@"):
		c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, at.Below("image_url"), "image_url %q is not the name of an image", fetch.WithoutCredentials(url)).
			WithRemedy(`write host and path, such as "registry.example.com/team/api"; the tag has a key of its own`))
	}
}

// imageKey checks the key that must have signed an image of somebody else's.
func (c *checker) imageKey(at place.Place, key string, image bool) {
	if key == "" {
		return
	}
	if !image {
		c.Add(place.Error, place.CodeValue, at, "image_key is for components of type container_image: this one is made by its build")
		return
	}
	if _, err := attest.ParseKey(key); err != nil {
		c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, at, "image_key: %s", err).
			WithRemedy("write the text of cosign.pub, in triple quotes"))
	}
}
