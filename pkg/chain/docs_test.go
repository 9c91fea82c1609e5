package chain_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/customerrole"
)

var codeSpan = regexp.MustCompile("`([a-z_]+)`")

// TestReferencePage: the table of docs/reference/chain.md names every field of a
// record and no other; the rows of nested ones name theirs.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/chain.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## A line\n")
	section, _, _ = strings.Cut(section, "\n## ")
	nested := map[string]reflect.Type{
		"accepted": reflect.TypeFor[chain.Acceptance](), "keys": reflect.TypeFor[chain.Keys](), "scripts": reflect.TypeFor[chain.Scripts](),
		"role": reflect.TypeFor[customerrole.Switch](), "consent": reflect.TypeFor[chain.Consent](), "standing_rules": reflect.TypeFor[chain.StandingRules](),
		"vendor_keys": reflect.TypeFor[chain.VendorKeys](),
	}
	var documented []string
	for row := range strings.Lines(section) {
		cells := strings.Split(row, "|")
		if len(cells) != 4 || !strings.HasPrefix(row, "| `") {
			continue
		}
		names := spans(cells[1])
		documented = append(documented, names...)
		for _, name := range names {
			if of := nested[name]; of != nil {
				if diff := cmp.Diff(jsonNames(of), slices.Compact(sorted(spans(cells[2])))); diff != "" {
					t.Errorf("the row of %s does not name the fields of %s (-code +page):\n%s", name, of, diff)
				}
				delete(nested, name)
			}
		}
	}
	want := sorted(append(jsonNames(reflect.TypeFor[chain.Record]()), "sig"))
	if diff := cmp.Diff(want, sorted(documented)); diff != "" {
		t.Errorf("the table does not name the fields of a record (-code +page):\n%s", diff)
	}
	if len(nested) > 0 {
		t.Errorf("no row of %v", nested)
	}
}

func spans(cell string) (names []string) {
	for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
		names = append(names, span[1])
	}
	return names
}

// jsonNames are the names of a struct's own fields, sorted.
func jsonNames(of reflect.Type) (names []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return sorted(names)
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
