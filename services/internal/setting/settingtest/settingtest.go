// Package settingtest holds the reference page of a service against its Config.
package settingtest

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// row of a table of settings: | `BERTH_LISTEN` | `127.0.0.1:8700` | …
var row = regexp.MustCompile("(?m)^\\| `(BERTH_[A-Z0-9_]+)` \\|([^|]*)\\|")

// Documented fails the test unless the page lists the settings of C, and no
// others, with their defaults.
func Documented[C any](t *testing.T, page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	inDocs, inCode := map[string]string{}, map[string]string{}
	for _, cells := range row.FindAllStringSubmatch(string(text), -1) {
		inDocs[cells[1]] = strings.ReplaceAll(strings.TrimSpace(cells[2]), "`", "")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[C]()) {
		name := field.Tag.Get("env")
		if name == "" || name == "-" {
			continue
		}
		inCode[name] = field.Tag.Get("default") + field.Tag.Get("shown")
	}
	if diff := cmp.Diff(inCode, inDocs); diff != "" {
		t.Errorf("settings (-code +%s):\n%s", page, diff)
	}
}
