package appconfig

import "strings"

// ContainerImage holds the keys of a component of type container_image, also
// called external_image: an image that somebody else builds.
type ContainerImage struct {
	Public *PublicImage `toml:"public" json:"public,omitempty" digest:"build"`
	ECR    *ECRImage    `toml:"aws_ecr" json:"aws_ecr,omitempty" digest:"build"`
}

// PublicImage is an image that is read without credentials.
type PublicImage struct {
	// ImageURL is the name without tag: "host/path".
	ImageURL     string `toml:"image_url" json:"image_url" rule:"required"`
	Tag          string `toml:"tag" json:"tag,omitempty"`
	UpdatePolicy string `toml:"update_policy" json:"update_policy,omitempty"`
}

// ECRImage is an image in a registry of AWS.
type ECRImage struct {
	ImageURL     string `toml:"image_url" json:"image_url" rule:"required"`
	Tag          string `toml:"tag" json:"tag,omitempty"`
	Region       string `toml:"region" json:"region,omitempty"`
	IAMRoleARN   string `toml:"iam_role_arn" json:"iam_role_arn,omitempty"`
	UpdatePolicy string `toml:"update_policy" json:"update_policy,omitempty"`
}

func (i *ContainerImage) check(ch *checker, c *Component) {
	switch {
	case i.ECR != nil && i.Public != nil:
		ch.add(Error, CodeExclusive, c.At.key("aws_ecr"), "only one of public and aws_ecr is possible")
	case i.ECR != nil:
		ch.unsupported(c.At.key("aws_ecr"), "an image of aws_ecr is")
	case i.Public == nil:
		ch.add(Error, CodeMissing, c.At, "no image is given")
	case i.Public.UpdatePolicy != "":
		ch.unsupported(c.At.key("public.update_policy"), "update_policy is")
	case i.Public.Tag == "":
		ch.add(Error, CodeMissing, c.At.key("public"), "tag is missing")
	case strings.Contains(i.Public.ImageURL, "://") || strings.Contains(i.Public.ImageURL, "@"):
		ch.diags = append(ch.diags, ch.at(Error, CodeValue, c.At.key("public.image_url"), "image_url %q is not the name of an image", i.Public.ImageURL).
			remedy(`write host and path, such as "registry.example.com/team/api"; the tag has a key of its own`))
	}
}
