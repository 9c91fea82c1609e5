package installsync

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// File is the file below installs/ that declares what an install is, so that
// syncing it changes nothing. Sensitive inputs are only named, in a comment.
func File(install ctlapi.Install, inputs ctlapi.Inputs) ([]byte, error) {
	var f file
	f.key("name", install.Name)
	option := "prompt"
	if install.ApprovalOption == ctlapi.ApprovalOptionApproveAll {
		option = appconfig.ApproveAll
	}
	f.key("approval_option", option)
	f.table("[labels]", install.Labels)
	f.inputs(install.Name, inputs.Items)
	if len(install.ComponentToggles) > 0 {
		f.line("\n[component_toggles]")
		for _, name := range slices.Sorted(maps.Keys(install.ComponentToggles)) {
			f.line("%s = %t", key(name), install.ComponentToggles[name])
		}
	}
	if inputs.Components != nil {
		for _, name := range slices.Sorted(maps.Keys(*inputs.Components)) {
			f.line("\n[components.%s]", key(name))
			override := (*inputs.Components)[name]
			if override.HelmValues != "" {
				f.key("helm_values", override.HelmValues)
			}
			if override.TfVars != "" {
				f.key("tf_vars", override.TfVars)
			}
		}
	}
	if install.Customer.Name != install.Name {
		f.table("[berth]", map[string]string{"customer": install.Customer.Name})
	}
	name := "installs/" + install.Name + ".toml"
	out, problem := syntax.Format(name, []byte(f.text.String()))
	if problem != nil {
		return nil, fmt.Errorf("write %s: %s", name, problem.Message)
	}
	return out, nil
}

// file collects lines of TOML.
type file struct{ text strings.Builder }

func (f *file) line(format string, args ...any) { fmt.Fprintf(&f.text, format+"\n", args...) }

func (f *file) key(name, text string) { f.line("%s = %s", key(name), quoted(text)) }

func (f *file) table(header string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	f.line("\n%s", header)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		f.key(name, values[name])
	}
}

func (f *file) inputs(install string, items []ctlapi.InputValue) {
	values, sealed := map[string]string{}, []string{}
	for _, in := range items {
		switch {
		case in.From != ctlapi.InputValueFromSet:
		case in.Sensitive:
			sealed = append(sealed, in.Name)
		case in.Value != nil:
			values[in.Name] = *in.Value
		}
	}
	if len(sealed) > 0 {
		slices.Sort(sealed)
		f.line("\n# Set, but left out because they are sensitive: %s", strings.Join(sealed, ", "))
		f.line("# berth installs inputs %s --set %s=…", install, sealed[0])
	}
	f.table("[[inputs]]", values)
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func key(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return basic(name)
}

// quoted writes a text as a string of TOML: one of several lines as it is, when
// that is possible.
func quoted(text string) string {
	control := strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f })
	if strings.Contains(text, "\n") && !control && !strings.Contains(text, "'''") && !strings.HasSuffix(text, "'") {
		return "'''\n" + text + "'''"
	}
	return basic(text)
}

func basic(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
