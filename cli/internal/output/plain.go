package output

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/pkg/visible"
)

var colorSequence = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// Printable is a line of a log without the colours of the tool that wrote it,
// and with everything else in it visible: tabs are all that is kept.
func Printable(text string) string {
	cells := strings.Split(colorSequence.ReplaceAllString(text, ""), "\t")
	for i, cell := range cells {
		cells[i] = visible.Line(cell)
	}
	return strings.Join(cells, "\t")
}

// ShortDigest is enough of a digest to compare by eye.
func ShortDigest(digest string) string {
	const enough = len("sha256:") + 12
	return digest[:min(len(digest), enough)]
}

// Plural counts things: "1 file", "2 files".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
