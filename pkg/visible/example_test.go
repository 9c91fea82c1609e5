package visible_test

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/visible"
)

func ExampleLine() {
	fmt.Println(visible.Line("web\x1b[2J\nweb2"))
	// Output: web⟨U+001B⟩[2J⟨U+000A⟩web2
}
