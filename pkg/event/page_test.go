package event_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/event"
)

var update = flag.Bool("update", false, "rewrite the reference page")

const pageFile = "../../docs/reference/events.md"

// The table of the reference page is made from the list.
func TestReferencePage(t *testing.T) {
	raw, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "\n## Kinds\n"
	head, _, found := strings.Cut(string(raw), mark)
	if !found {
		t.Fatalf("%s has no section Kinds", pageFile)
	}
	var b strings.Builder
	b.WriteString(head + mark + "\nEvents about an install also have `install` and `app`, the names. A field is left out where there is nothing to say.\n\n")
	b.WriteString("| kind | what happened | body | needs |\n|---|---|---|---|\n")
	for _, d := range event.All {
		fields := ""
		if len(d.Fields) > 0 {
			fields = "`" + strings.Join(d.Fields, "` `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", d.Kind, d.When, fields, d.Right)
	}
	if *update {
		if err := os.WriteFile(pageFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != string(raw) {
		t.Errorf("%s is not what the list says: go test ./event -run TestReferencePage -update", pageFile)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	if kinds, unknown := event.Expand([]string{"build.*", "build.failed", "release.created"}); unknown != "" || len(kinds) != 6 {
		t.Errorf("got %v, %q", kinds, unknown)
	}
	for _, bad := range []string{"build", "*", "build.lost", "buil.*", ""} {
		if _, unknown := event.Expand([]string{"build.*", bad}); unknown != bad {
			t.Errorf("%q passes", bad)
		}
	}
}
