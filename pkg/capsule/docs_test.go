package capsule_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// TestReferencePage: docs/reference/orders.md names every field of what is
// signed and approved, in its order, and no other.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/orders.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, fields := range map[string][]string{
		"## Effect digest":             fieldNames(reflect.TypeFor[capsule.Effect](), ""),
		"## Order":                     fieldNames(reflect.TypeFor[capsule.Order](), ""),
		"## Settings":                  fieldNames(reflect.TypeFor[jobspec.Settings](), ""),
		"### An entry of the schedule": ownNames(reflect.TypeFor[jobspec.Scheduled]()),
	} {
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			want, got := map[string]bool{}, map[string]bool{}
			for _, name := range fields {
				want[name] = true
			}
			for _, name := range documented(t, string(page), heading) {
				if got[name] {
					t.Errorf("%s stands there twice", name)
				}
				got[name] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the table under %q does not name the fields (-code +page):\n%s", heading, diff)
			}
		})
	}
}

// fieldNames are the JSON names of a struct's fields; those of a struct in it
// follow its name and a dot. What is behind a pointer or in a list is one field.
func fieldNames(t reflect.Type, prefix string) []string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type.Kind() == reflect.Struct && field.Type.PkgPath() != "time" {
			names = append(names, fieldNames(field.Type, prefix+name+".")...)
		} else {
			names = append(names, prefix+name)
		}
	}
	return names
}

// ownNames are the JSON names of a struct's own fields.
func ownNames(t reflect.Type) (names []string) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// documented are the names in the first column of the first table under a
// heading. A name that begins with a dot belongs to the one before.
func documented(t *testing.T, page, heading string) []string {
	t.Helper()
	_, section, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	_, table, found := strings.Cut(section, "\n|---|")
	if !found {
		t.Fatalf("section %q has no table", heading)
	}
	var names []string
	for _, row := range strings.Split(table, "\n")[1:] {
		if !strings.HasPrefix(row, "|") {
			break
		}
		parent := ""
		for _, span := range codeSpan.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			name := span[1]
			if strings.HasPrefix(name, ".") {
				name = parent + name
			} else {
				parent, _, _ = strings.Cut(name, ".")
			}
			names = append(names, name)
		}
	}
	return names
}
