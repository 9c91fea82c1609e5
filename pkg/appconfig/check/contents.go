package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/tfvars"
)

// contents checks that texts are what they claim to be: YAML, JSON, Kyverno or
// Rego. A text that is a template is not looked at, since only rendering makes
// it one or the other.
func (v *validator) contents() {
	if v.app.Sandbox != nil {
		v.varFiles(v.app.Sandbox.At, v.app.Sandbox.VarFiles)
	}
	for i := range v.app.Components {
		v.componentContents(&v.app.Components[i])
	}
	for _, list := range [][]appconfig.Role{v.app.Permissions, v.app.BreakGlass} {
		for i := range list {
			r := &list[i]
			v.document(r.At.Below("permissions_boundary"), r.PermissionsBoundary, jsonDocument)
			for j := range r.Policies {
				v.document(r.At.Below("policies").Item(j).Below("contents"), r.Policies[j].Contents, jsonDocument)
			}
		}
	}
	for i := range v.app.Policies {
		v.policyContents(&v.app.Policies[i])
	}
	for i := range v.app.Installs {
		in := &v.app.Installs[i]
		for name, override := range in.Components {
			at := in.At.Below("components").Below(name)
			v.document(at.Below("helm_values"), &place.Text{Contents: override.HelmValues}, yamlMapping)
			v.document(at.Below("tf_vars"), &place.Text{Contents: override.TFVars}, terraformValues)
		}
	}
	if v.skipped > 0 {
		v.Add(place.Note, place.CodeUnchecked, v.firstSkipped, "%d texts of YAML or JSON are not checked: one is checked up to %d MiB, all up to %d MiB together", v.skipped, maxText>>20, maxParsed>>20)
	}
}

// terraformValues looks at a file of variables: whether it can be read to its end.
func terraformValues(contents string) *badDocument {
	if strings.HasPrefix(strings.TrimSpace(contents), "{") {
		return jsonDocument(contents)
	}
	if p := tfvars.BrokenValues(contents); p != nil {
		return &badDocument{line: p.Line, message: "is not in Terraform's notation: line " + strconv.Itoa(p.Line) + " " + p.Message}
	}
	return nil
}

func (v *validator) varFiles(at place.Place, files []appconfig.VarFile) {
	for i := range files {
		v.document(at.Below("var_file").Item(i).Below("contents"), &files[i].Contents, terraformValues)
	}
}

func (v *validator) componentContents(c *appconfig.Component) {
	if c.TerraformModule != nil {
		v.varFiles(c.At, c.TerraformModule.VarFiles)
	}
	if c.HelmChart != nil {
		for i := range c.HelmChart.ValuesFiles {
			v.document(c.At.Below("values_file").Item(i).Below("contents"), &c.HelmChart.ValuesFiles[i].Contents, yamlMapping)
		}
	}
	if m := c.KubernetesManifest; m != nil {
		v.document(c.At.Below("manifest"), m.Manifest, yamlObjects)
	}
}

// Limits on what is parsed: a byte of the worst YAML costs over a hundred in
// memory. What is larger is right or wrong when it is deployed.
const (
	maxText   = 1 << 20 // bytes of one text
	maxParsed = 4 << 20 // bytes of all of them
)

// document reports what is wrong with a text, at its line.
func (v *validator) document(at place.Place, text *place.Text, check func(contents string) *badDocument) {
	if text == nil || text.Contents == "" || interpolate.IsTemplate(text.Contents) {
		return
	}
	if v.known == nil {
		v.known = map[string]bool{}
	}
	from := text.From()
	if from != "" && v.known[from] {
		return // it was found right, or its problem is reported
	}
	if len(text.Contents) > maxText || v.parsed+len(text.Contents) > maxParsed {
		if v.skipped++; v.skipped == 1 {
			v.firstSkipped = at
		}
		return
	}
	v.parsed += len(text.Contents)
	bad := check(text.Contents)
	v.known[from] = from != ""
	if bad == nil {
		return
	}
	t := template.Value{At: at, Text: text.Contents, File: from}
	code := cmp.Or(bad.code, place.CodeContents)
	line := min(bad.line, strings.Count(strings.TrimRight(text.Contents, "\n"), "\n")+1) // parsers also point behind the end
	v.Diags = append(v.Diags, t.AtColumn(v.Origin, place.Diagnostic{
		Severity: place.Error, Code: code, Line: line, Column: 1, Message: at.Last() + " " + bad.message, Remedy: bad.remedy,
	}))
}

// badDocument says what is wrong with a text, and in which line, from 1.
type badDocument struct {
	line    int
	message string
	remedy  string
	code    place.Code // contents when empty
}

func jsonDocument(contents string) *badDocument {
	var value json.RawMessage
	err := json.Unmarshal([]byte(contents), &value)
	if err == nil {
		return nil
	}
	bad := &badDocument{line: 1, message: "is not valid JSON: " + err.Error()}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := contents[:min(int(syntax.Offset), len(contents))]
		bad.line = strings.Count(strings.TrimRight(before, "\n"), "\n") + 1
	}
	return bad
}

// documents parses each YAML document of a text.
func documents(contents string) ([]any, *badDocument) {
	var all []any
	d := yaml.NewDecoder(strings.NewReader(contents))
	for {
		var one any
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, badYAML(err)
		}
		if one != nil {
			all = append(all, one)
		}
	}
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func badYAML(err error) *badDocument {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	message, _, _ = strings.Cut(message, "\n")
	bad := &badDocument{line: 1, message: "is not valid YAML: " + yamlLine.ReplaceAllString(message, "")}
	if at := yamlLine.FindStringSubmatch(message); at != nil {
		bad.line, _ = strconv.Atoi(at[1])
	}
	return bad
}

func yamlMapping(contents string) *badDocument {
	all, bad := documents(contents)
	if bad != nil {
		return bad
	}
	for _, one := range all {
		if _, ok := one.(map[any]any); !ok {
			return &badDocument{line: 1, message: "is YAML, but no mapping of keys to values"}
		}
	}
	if len(all) > 1 {
		return &badDocument{line: 1, message: "has more than one YAML document", remedy: "write a values file for each"}
	}
	return nil
}

func yamlObjects(contents string) *badDocument {
	all, bad := documents(contents)
	if bad != nil {
		return bad
	}
	for _, one := range all {
		if object, ok := one.(map[any]any); !ok || object["kind"] == nil {
			return &badDocument{line: 1, message: "has a YAML document that is no Kubernetes object", remedy: "give every object apiVersion and kind"}
		}
	}
	return nil
}
