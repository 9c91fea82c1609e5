package schema

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/schema/fielddoc"
)

// The generated part of the reference page stands between these lines.
const (
	keysBegin = "<!-- keys: go test ./appconfig/schema -run TestReferencePage -update writes what follows -->\n"
	keysEnd   = "<!-- end of keys -->\n"
)

// sharedTables have a section of their own, because many blocks hold them.
var sharedTables = []struct {
	title string
	block reflect.Type
}{
	{"Repository", reflect.TypeFor[appconfig.Repo]()},
	{"Berth's own keys of a sandbox or a component", reflect.TypeFor[appconfig.BlockExtension]()},
	{"Berth's own keys of an action", reflect.TypeFor[appconfig.ActionExtension]()},
	{"Var file", reflect.TypeFor[appconfig.VarFile]()},
	{"Values file", reflect.TypeFor[appconfig.ValuesFile]()},
	{"Operation role", reflect.TypeFor[appconfig.OperationRole]()},
	{"Nested stack", reflect.TypeFor[appconfig.NestedStack]()},
	{"Health of a component", reflect.TypeFor[appconfig.ComponentHealth]()},
	{"Event trigger", reflect.TypeFor[appconfig.EventTrigger]()},
	{"Kubernetes context", reflect.TypeFor[appconfig.KubernetesContext]()},
}

// TestReferencePage holds the page's tables against the structs that are read;
// -update writes them.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	const file = "../../../docs/reference/app-config.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), keysBegin)
	written, after, okToo := strings.Cut(rest, keysEnd)
	if !ok || !okToo {
		t.Fatalf("%s has no lines that begin and end its tables", file)
	}
	want := notYetTable() + referenceTables()
	if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
		if err := os.WriteFile(file, []byte(before+keysBegin+want+keysEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want == written {
		return
	}
	have, lines := strings.Split(written, "\n"), strings.Split(want, "\n")
	for _, line := range lines {
		if !slices.Contains(have, line) {
			t.Errorf("the page lacks %s", line)
		}
	}
	for _, line := range have {
		if !slices.Contains(lines, line) {
			t.Errorf("the page has  %s", line)
		}
	}
	t.Errorf("%s is not what the structs say; run the test with -update", file)
}

func referenceTables() string {
	var b strings.Builder
	for _, k := range fileKinds {
		block := k.blocks[len(k.blocks)-1]
		if k.Name == "full" {
			block = k.blocks[0]
		}
		section(&b, sectionTitle(k), block)
	}
	for _, s := range sharedTables {
		section(&b, s.title, s.block)
	}
	return b.String()
}

// sectionTitle is the file's name, or the name of a component type.
func sectionTitle(k Kind) string {
	if _, typeName, ok := strings.Cut(k.Files, "of type "); ok {
		return strings.Fields(typeName)[0]
	}
	return k.Files
}

// sectionOf is the title of the section that describes a block, "" when it has
// none.
func sectionOf(block reflect.Type) string {
	for _, s := range sharedTables {
		if s.block == block {
			return s.title
		}
	}
	for _, k := range fileKinds {
		if k.blocks[len(k.blocks)-1] == block && k.Name != "full" {
			return sectionTitle(k)
		}
	}
	if block == reflect.TypeFor[appconfig.AnyComponent]() {
		return "components/**/*.toml"
	}
	return ""
}

func section(b *strings.Builder, title string, block reflect.Type) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| key | type | meaning |\n|---|---|---|\n", strings.ReplaceAll(title, "*", `\*`), fielddoc.Of[block.Name()])
	rows(b, block, "")
}

func rows(b *strings.Builder, block reflect.Type, prefix string) {
	for _, key := range keysOf(block) {
		inner, suffix := tableIn(key.field.Type)
		title := ""
		if inner != nil {
			title = sectionOf(inner)
		}
		if inner != nil && title == "" && key.Doc == "" {
			rows(b, inner, prefix+key.Path+suffix+".")
			continue
		}
		row(b, key, prefix, title)
		if inner != nil && title == "" {
			rows(b, inner, prefix+key.Path+suffix+".")
		}
	}
}

func row(b *strings.Builder, key Key, prefix, title string) {
	kind := []string{key.Type}
	if title != "" {
		kind[0] = fmt.Sprintf("[%s](#%s)", key.Type, anchor(title))
	}
	if key.Required {
		kind = append(kind, "required")
	}
	if key.Template {
		kind = append(kind, "template")
	}
	if key.Digest != "" {
		kind = append(kind, key.Digest)
	}
	meaning := key.Doc
	if len(key.Enum) > 0 {
		meaning += " One of " + code(key.Enum) + "."
	}
	if key.Default != "" {
		meaning += " Default: " + code([]string{key.Default}) + "."
	}
	if len(key.Aliases) > 0 {
		meaning += " Also written " + code(key.Aliases) + "."
	}
	fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, key.Path, strings.Join(kind, ", "), strings.ReplaceAll(meaning, "|", `\|`))
}

func code(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

// anchor is what a heading becomes in a link.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

// notYetTable lists what this version does not act on.
func notYetTable() string {
	var b strings.Builder
	b.WriteString("\n| keys | when | a sync | waits for |\n|---|---|---|---|\n")
	for _, row := range check.NotYets() {
		does := "warns, and ignores it"
		switch row.Severity {
		case place.Error:
			does = "refuses it"
		case place.Note:
			does = "notes it, and ignores it"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.Join(row.Keys, "`, `"), row.When, does, row.WaitsFor)
	}
	return b.String()
}
