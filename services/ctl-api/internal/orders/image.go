package orders

import "github.com/berth-dev/berth/pkg/jobspec"

// containerImage is an image that somebody else has built.
func containerImage(spec *jobspec.Spec, c component) bool {
	if c.ContainerImage == nil || c.ContainerImage.Public == nil {
		return false
	}
	spec.Kind, spec.ContainerImage = jobspec.KindContainerImage, &jobspec.ContainerImage{Tag: c.ContainerImage.Public.Tag}
	return true
}
