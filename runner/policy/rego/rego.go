// Package rego judges documents by rules in Rego, through OPA: the rules deny, ask and warn
// of package nuon or berth, each a set or a list of messages, or of objects with a msg.
//
// Rules see a document as input and nothing else of the world: built-in functions that reach
// a network, the process or chance are unknown here, so a file that calls one does not load.
// time.now_ns is the same moment for all rules and documents of a request.
package rego

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/rule"
)

// packages are those whose rules count.
var packages = []string{"nuon", "berth"}

// answers are the rules that count, and what each means. The order is that of verdicts.
var answers = []struct {
	rule   string
	answer policy.Answer
}{{"deny", policy.Deny}, {"ask", policy.Ask}, {"warn", policy.Warn}}

// Capabilities are what rules may call.
func Capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.Name == "trace" || b.Nondeterministic && b.Name != ast.NowNanos.Name
	})
	c.AllowNet = []string{} // schemas of other hosts neither
	return c
}

// set is the rules of one file.
type set struct {
	query   rego.PreparedEvalQuery
	defined []string
}

// Load reads and compiles rules. What is wrong with them is of type rule.Problems.
func Load(ctx context.Context, text string, v0 bool) (rule.Set, error) {
	if len(text) > rule.MaxText {
		return nil, rule.Problems{{Line: 1, Text: fmt.Sprintf("the file is longer than %d bytes", rule.MaxText)}}
	}
	module, compiler, err := compile(text, v0)
	if err != nil {
		return nil, problems(err)
	}
	name := strings.TrimPrefix(module.Package.Path.String(), "data.")
	if !slices.Contains(packages, name) {
		return nil, rule.Problems{{Line: module.Package.Location.Row, Text: fmt.Sprintf("package %s: rules are in package berth or nuon", name)}}
	}
	var defined []string
	for _, a := range answers {
		if len(compiler.GetRulesExact(module.Package.Path.Append(ast.StringTerm(a.rule)))) > 0 {
			defined = append(defined, a.rule)
		}
	}
	if len(defined) == 0 {
		return nil, rule.Problems{{Line: module.Package.Location.Row, Text: "there is no rule deny, ask or warn"}}
	}
	query, err := rego.New(rego.Query(module.Package.Path.String()), rego.Compiler(compiler), rego.Store(inmem.New()), rego.StrictBuiltinErrors(true)).PrepareForEval(ctx)
	if err != nil {
		return nil, problems(err)
	}
	return &set{query: query, defined: defined}, nil
}

// compile is apart so that a file can be compiled on its own.
func compile(text string, v0 bool) (*ast.Module, *ast.Compiler, error) {
	version := ast.RegoV1
	if v0 {
		version = ast.RegoV0
	}
	capabilities := Capabilities()
	module, err := ast.ParseModuleWithOpts("policy.rego", text, ast.ParserOptions{Capabilities: capabilities, RegoVersion: version})
	if err != nil {
		return nil, nil, err
	}
	if module == nil {
		return nil, nil, errors.New("the file is empty")
	}
	compiler := ast.NewCompiler().WithCapabilities(capabilities).WithDefaultRegoVersion(version)
	if compiler.Compile(map[string]*ast.Module{"policy.rego": module}); compiler.Failed() {
		return nil, nil, compiler.Errors
	}
	return module, compiler, nil
}

// problems are what OPA found wrong, in lines.
func problems(err error) rule.Problems {
	var all ast.Errors
	if !errors.As(err, &all) {
		return rule.Problems{{Line: 1, Text: err.Error()}}
	}
	var out rule.Problems
	for _, e := range all {
		p := rule.Problem{Line: 1, Text: e.Message}
		if e.Location != nil {
			p.Line = max(1, e.Location.Row)
		}
		if name, undefined := strings.CutPrefix(e.Message, "undefined function "); undefined && known(name) {
			p.Text = fmt.Sprintf("%s reaches outside of the document (a network, the process, chance), which rules cannot here", name)
		}
		out = append(out, p)
	}
	return out
}

// known says whether OPA has a built-in function of this name.
func known(name string) bool {
	return slices.ContainsFunc(ast.CapabilitiesForThisVersion().Builtins, func(b *ast.Builtin) bool { return b.Name == name })
}

// Judge asks the rules about one document.
func (s *set) Judge(ctx context.Context, d *rule.Document) []policy.Verdict {
	input, err := d.Value()
	if err != nil {
		return wrong("%v", err)
	}
	results, err := s.query.Eval(ctx, rego.EvalParsedInput(input), rego.EvalTime(d.Now))
	switch {
	case err != nil:
		return wrong("%v", err)
	case len(results) != 1 || len(results[0].Expressions) != 1:
		return wrong("the rules have no value for this document")
	}
	values, ok := results[0].Expressions[0].Value.(map[string]any)
	if !ok {
		return wrong("the rules have no value for this document")
	}
	var out []policy.Verdict
	for _, a := range answers {
		found, defined := values[a.rule]
		if !defined {
			continue
		}
		verdicts, err := read(found, a.rule, a.answer)
		if err != nil {
			return wrong("%s: %v", a.rule, err)
		}
		if out = append(out, verdicts...); len(out) > policy.MaxOfOne {
			return out // the engine says so
		}
	}
	if len(out) == 0 {
		return []policy.Verdict{{Result: policy.Pass}}
	}
	return out
}

func wrong(format string, arguments ...any) []policy.Verdict {
	return []policy.Verdict{{Result: policy.Error, Message: fmt.Sprintf(format, arguments...)}}
}

// read makes verdicts out of what a rule gave.
func read(found any, name string, answer policy.Answer) ([]policy.Verdict, error) {
	verdict := policy.Verdict{Rule: name, Result: policy.Fail, On: answer}
	if answer == policy.Warn {
		verdict.Result = policy.Warning
	}
	switch v := found.(type) {
	case []any: // a set too
		var out []policy.Verdict
		for _, item := range v {
			if len(out) > policy.MaxOfOne {
				break
			}
			one, err := read(item, name, answer)
			if err != nil {
				return nil, err
			}
			out = append(out, one...)
		}
		return out, nil
	case string:
		verdict.Message = v
	case bool:
		if !v {
			return nil, nil
		}
	case map[string]any:
		message, ok := v["msg"]
		if !ok {
			return nil, fmt.Errorf("an object without msg: %s", brief(v))
		}
		verdict.Message, ok = message.(string)
		if !ok {
			verdict.Message = brief(message)
		}
		verdict.Severity, _ = v["severity"].(string)
	default:
		return nil, fmt.Errorf("neither a message nor an object with msg: %s", brief(v))
	}
	return []policy.Verdict{verdict}, nil
}

func brief(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	const most = 200
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}
