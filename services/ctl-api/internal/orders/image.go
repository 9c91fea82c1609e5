package orders

import (
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// containerImage is an image that somebody else has built.
func containerImage(c component) (work jobspec.Work, deployable bool) {
	if c.ContainerImage == nil {
		return work, false
	}
	var image, tag, updates string
	switch of := c.ContainerImage; {
	case of.Public != nil:
		image, tag, updates = of.Public.ImageURL, of.Public.Tag, of.Public.UpdatePolicy
	case of.ECR != nil:
		image, tag, updates = of.ECR.ImageURL, of.ECR.Tag, of.ECR.UpdatePolicy
	default:
		return work, false
	}
	if updates != "" {
		tag, _, _ = strings.Cut(c.commit, "@") // TAG@DIGEST
	}
	work.ContainerImage = &jobspec.ContainerImage{Image: image, Tag: tag}
	return work, true
}

// imageKeys are the keys that the vendor's policies take signatures of an image from: the one
// that the app names, or that of the machine that built it.
func (r Revision) imageKeys(c component) []string {
	switch {
	case c.ContainerImage != nil && c.Berth != nil && c.Berth.ImageKey != "":
		return []string{c.Berth.ImageKey}
	case c.DockerBuild != nil && r.SignedBy != "":
		return []string{r.SignedBy}
	}
	return nil
}
