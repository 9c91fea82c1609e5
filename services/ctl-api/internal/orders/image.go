package orders

import "github.com/berth-dev/berth/pkg/jobspec"

// containerImage is an image that somebody else has built.
func containerImage(c component) (work jobspec.Work, deployable bool) {
	if c.ContainerImage == nil || c.ContainerImage.Public == nil {
		return work, false
	}
	work.ContainerImage = &jobspec.ContainerImage{Tag: c.ContainerImage.Public.Tag}
	return work, true
}
