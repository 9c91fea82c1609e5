// Package stepimage has the rule for the image that the steps of an action run
// in (key "image"). Where the name comes from and what runs there is for others.
package stepimage

import (
	"fmt"
	"regexp"
)

// Remedy is what to do about an image that Check refuses.
const Remedy = "name the image by digest (HOST/NAME@sha256:…), or have it built as a component and give {{ .nuon.components.NAME.outputs.image.ref }}"

// maxName is the longest name that is accepted, in bytes: those of registries are
// shorter.
const maxName = 512

// exact is a name that leads to the same image on every node and at any time. The
// host is part of it: a node may complete a short name in its own way.
var exact = regexp.MustCompile(`^(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+:[0-9]{1,5})(:[0-9]{1,5})?` + // host
	`(/[a-z0-9]+([._-]+[a-z0-9]+)*)+` + // repository
	`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?@sha256:[0-9a-f]{64}$`)

// Check refuses a name that does not say by digest which image it means, and by
// host where it is. A tag may stand before the digest, for people.
func Check(image string) error {
	if len(image) <= maxName && exact.MatchString(image) {
		return nil
	}
	if len(image) > maxName {
		image = image[:maxName] + "…"
	}
	return fmt.Errorf("the image %q is not named by host and digest, HOST/NAME@sha256:…", image)
}
