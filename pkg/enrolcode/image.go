package enrolcode

import (
	"fmt"
	"regexp"
)

// pinned is an image that one digest decides.
var pinned = regexp.MustCompile(`^[^@\s]+@sha256:[0-9a-f]{64}$`)

// CheckImage refuses an image of the runner without a digest. A tag may lead to
// other code tomorrow, and nobody would have agreed to that.
func CheckImage(image string) error {
	if pinned.MatchString(image) {
		return nil
	}
	return fmt.Errorf("the image %q is not named by digest, NAME@sha256:…: a tag may lead to another image later. `crane digest IMAGE`, `skopeo inspect` or `docker buildx imagetools inspect IMAGE` print it", image)
}
