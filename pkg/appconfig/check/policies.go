package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
)

func (v *validator) policyContents(p *appconfig.Policy) {
	look := map[string]func(string) *badDocument{"opa": regoPackage, "kyverno": kyvernoPolicy}[p.Engine]
	if look == nil {
		return // the engine itself is reported
	}
	v.document(p.At.Below("contents"), &p.Contents, func(contents string) *badDocument {
		bad := look(contents)
		if bad != nil {
			bad.code = place.CodePolicy
		}
		return bad
	})
}

const allowThem = "take it as it is with --allow-invalid-policies"

// weighPolicies makes warnings of what is wrong with the contents of policies, when
// they are allowed, and else says how to allow them.
func weighPolicies(diags []place.Diagnostic, allow bool) []place.Diagnostic {
	for i := range diags {
		d := &diags[i]
		switch {
		case d.Code != place.CodePolicy:
		case allow:
			d.Severity = place.Warning
		case d.Remedy == "":
			d.Remedy = allowThem
		default:
			d.Remedy = strings.TrimSuffix(d.Remedy, "?") + ", or " + allowThem
		}
	}
	return diags
}

var regoPackageLine = regexp.MustCompile(`(?m)^\s*package\s+([\w.]+)`)

// regoPackage looks at no more than the package: what the rules mean only an
// engine can tell.
func regoPackage(contents string) *badDocument {
	name := regoPackageLine.FindStringSubmatch(contents)
	switch {
	case name == nil:
		return &badDocument{line: 1, message: "is no Rego: it has no package", remedy: `begin it with "package nuon", or write engine = "kyverno"`}
	case name[1] != "nuon" && name[1] != "berth":
		return &badDocument{line: 1, message: `has the package "` + name[1] + `", whose rules nobody asks for`, remedy: `call it "nuon"`}
	}
	return nil
}

// kyvernoPolicy looks at what makes an object a policy, and at the keys of its
// rules: Kyverno refuses a policy that has others.
func kyvernoPolicy(contents string) *badDocument {
	all, bad := documents(contents)
	remedy := ""
	if regoPackageLine.MatchString(contents) {
		remedy = `write engine = "opa" if it is Rego`
	}
	if bad != nil {
		bad.remedy = remedy
		return bad
	}
	for _, one := range all {
		object, _ := one.(map[any]any)
		version, _ := object["apiVersion"].(string)
		group, _, _ := strings.Cut(version, "/")
		if !slices.Contains([]string{"kyverno.io", "policies.kyverno.io"}, group) || object["kind"] == nil {
			return &badDocument{line: 1, message: "is YAML, but no policy of Kyverno: apiVersion is " + strconv.Quote(version), remedy: remedy}
		}
		if bad := unknownRuleKey(contents, object); bad != nil {
			return bad
		}
	}
	if len(all) == 0 {
		return &badDocument{line: 1, message: "has no policy", remedy: remedy}
	}
	return nil
}

// ruleKeys are the keys that a rule of kyverno.io may have, in any version of it.
var ruleKeys = []string{
	"name", "context", "match", "exclude", "imageExtractors", "preconditions", "celPreconditions", "mutate", "validate", "generate",
	"verifyImages", "skipBackgroundRequests", "reportProperties",
}

// unknownRuleKey finds the first key of a rule that Kyverno does not know. The
// policies of CEL (policies.kyverno.io) have no rules of this kind.
func unknownRuleKey(contents string, policy map[any]any) *badDocument {
	if version, _ := policy["apiVersion"].(string); !strings.HasPrefix(version, "kyverno.io/") || policy["kind"] != "ClusterPolicy" && policy["kind"] != "Policy" {
		return nil
	}
	spec, _ := policy["spec"].(map[any]any)
	rules, _ := spec["rules"].([]any)
	for i, one := range rules {
		rule, _ := one.(map[any]any)
		var unknown []string
		for key := range rule {
			if name := fmt.Sprint(key); !slices.Contains(ruleKeys, name) {
				unknown = append(unknown, name)
			}
		}
		if len(unknown) == 0 {
			continue
		}
		key, which := slices.Min(unknown), strconv.Itoa(i+1)
		if name, ok := rule["name"].(string); ok {
			which = strconv.Quote(name)
		}
		bad := &badDocument{line: lineOfKey(contents, key), message: fmt.Sprintf("has the key %q in rule %s, for which Kyverno refuses the policy", key, which)}
		if near := place.Nearest(key, ruleKeys); near != "" {
			bad.remedy = fmt.Sprintf("did you mean %q?", near)
		}
		return bad
	}
	return nil
}

// lineOfKey is the first line that begins with a key, from 1.
func lineOfKey(contents, key string) int {
	at := regexp.MustCompile(`(?m)^[ \t-]*["']?` + regexp.QuoteMeta(key) + `["']?[ \t]*:`).FindStringIndex(contents)
	if at == nil {
		return 1
	}
	return strings.Count(contents[:at[0]], "\n") + 1
}

// policies checks names, and that the components exist.
func (v *validator) policies() {
	first, names := map[string]place.Place{}, v.components()
	for _, p := range v.app.Policies {
		if at, twice := first[p.Name]; twice {
			v.Add(place.Warning, place.CodeDuplicate, p.At, "policy %q has the name of the one at %s", p.Name, v.Origin.Where(at))
		} else {
			first[p.Name] = p.At
		}
		for i, name := range p.Components {
			if name != appconfig.AllComponents {
				v.exists(p.At.Below("components").Item(i), name, names)
			}
		}
	}
}

// PolicyText is the contents of one policy, for an engine to load.
type PolicyText struct {
	Index  int // in App.Policies
	Engine string
	Text   string
}

// PolicyTexts are the contents that an engine can load as they are: there is no template in
// them.
func PolicyTexts(app *appconfig.App) []PolicyText {
	var texts []PolicyText
	for i := range app.Policies {
		p := &app.Policies[i]
		if text := p.Contents.Contents; text != "" && !interpolate.IsTemplate(text) && (p.Engine == "kyverno" || p.Engine == "opa") {
			texts = append(texts, PolicyText{Index: i, Engine: p.Engine, Text: text})
		}
	}
	return texts
}

// PolicyProblem is what an engine says is wrong with the contents of a policy.
type PolicyProblem struct {
	Index   int // in App.Policies
	Line    int // of the contents, from 1
	Message string
}

// RefusedPolicies says where in the folder the problems are, errors unless they are allowed.
// What this package has found itself in the same policy is not said twice.
func RefusedPolicies(app *appconfig.App, problems []PolicyProblem, found []place.Diagnostic, allow bool) []place.Diagnostic {
	v := validator{Report: place.Report{Origin: &app.Origin}, app: app}
	for _, problem := range problems {
		p := &app.Policies[problem.Index]
		v.known = nil // the same text may have several problems
		v.document(p.At.Below("contents"), &p.Contents, func(string) *badDocument {
			return &badDocument{line: problem.Line, message: "is refused by its engine: " + problem.Message, code: place.CodePolicy}
		})
	}
	said := map[string]bool{}
	for _, d := range found {
		said[d.File] = said[d.File] || d.Code == place.CodePolicy
	}
	return weighPolicies(slices.DeleteFunc(v.Diags, func(d place.Diagnostic) bool { return said[d.File] }), allow)
}

// UnloadedPolicies is the note of an app whose policies no engine has loaded.
func UnloadedPolicies(app *appconfig.App, why string) place.Diagnostic {
	return app.Origin.Diagnose(place.Note, place.CodeUnchecked, place.Place{File: app.Policies[0].At.File}, "the rules of policies are not loaded: %s", why)
}
