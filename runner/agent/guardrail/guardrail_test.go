package guardrail_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/guardrail"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func load(files ...guardrail.File) guardrail.Set {
	for i := range files {
		files[i].From = "guardrails"
	}
	return guardrail.Load(files, guardrail.Options{Registry: "r.example", Now: noon})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	answers := func(text string) guardrail.File { return guardrail.File{Name: "answers.json", Text: text} }
	for _, tc := range []struct {
		name     string
		files    []guardrail.File
		rules    int    // more than the standard ones
		problems string // in one of them
	}{
		{name: "nothing of the customer's"},
		{name: "both languages", files: []guardrail.File{{Name: "a.rego", Text: "package berth"}, {Name: "b.yaml"}, {Name: "c.v0.rego"}}, rules: 3},
		{name: "something else", files: []guardrail.File{{Name: "README.md"}}, problems: "guardrails/README.md: guardrails are files"},
		{name: "two of one name", files: []guardrail.File{{Name: "a.rego"}, {Name: "a.yaml"}}, rules: 1, problems: "another guardrail named a"},
		{name: "one that passes for a standard one", files: []guardrail.File{{Name: "host-path.yaml"}}, problems: "another guardrail named host-path"},
		{name: "one that somebody else wrote", files: []guardrail.File{{Name: "a.rego", Wrong: "belongs to user 7"}}, problems: "guardrails/a.rego: belongs to user 7"},
		{name: "one that is too long", files: []guardrail.File{{Name: "a.rego", Text: strings.Repeat("#", guardrail.MaxFile+1)}}, problems: "longer than"},
		{name: "too many", files: slices.Repeat([]guardrail.File{{Name: "README.md"}}, guardrail.MaxFiles+1), problems: "501 files"},
		{name: "a loosening", files: []guardrail.File{answers(`{"answers": [{"guardrail": "host-path", "answer": "allow", "reason": "x"}]}`)}, rules: -1},
		{name: "a loosening that is over", files: []guardrail.File{answers(`{"answers": [{"guardrail": "host-path", "answer": "allow", "reason": "x", "until": "2026-11-20T12:00:00Z"}]}`)}},
		{name: "a loosening for one component", files: []guardrail.File{answers(`{"answers": [{"guardrail": "host-path", "answer": "allow", "reason": "x", "components": ["a"]}]}`)}},
		{name: "a loosening without a reason", files: []guardrail.File{answers(`{"answers": [{"guardrail": "host-path", "answer": "allow"}]}`)}, problems: "needs a reason"},
		{name: "a loosening of something misspelt", files: []guardrail.File{answers(`{"answers": [{"guardrail": "hostpath", "answer": "allow", "reason": "x"}]}`)}, problems: `no guardrail "hostpath"`},
		{name: "an unknown key", files: []guardrail.File{answers("{\n \"only_wran\": true}")}, problems: "only_wran"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := load(tc.files...)
			if got := len(s.Rules) - len(guardrail.Standards); got != tc.rules {
				t.Errorf("%d rules more than the standard ones, want %d", got, tc.rules)
			}
			if (len(s.Problems) > 0) != (tc.problems != "") || tc.problems != "" && !strings.Contains(fmt.Sprint(s.Problems), tc.problems) {
				t.Errorf("problems %v, want one that says %q", s.Problems, tc.problems)
			}
		})
	}
}

// All that changes what a plan is answered changes the digest, and nothing else does.
func TestDigest(t *testing.T) {
	t.Parallel()
	rego := guardrail.File{Name: "a.rego", Text: "package berth"}
	loose := func(until string) guardrail.File {
		return guardrail.File{Name: "answers.json", Text: `{"answers": [{"guardrail": "host-path", "answer": "warn", "reason": "x", "until": "` + until + `"}]}`}
	}
	development := load()
	development.Development = true
	sets := map[string]guardrail.Set{
		"standard": load(), "a file": load(rego), "its text": load(guardrail.File{Name: "a.rego", Text: "package berth\n"}), "its language": load(guardrail.File{Name: "a.yaml", Text: "package berth"}),
		"its name": load(guardrail.File{Name: "b.rego", Text: "package berth"}), "looser": load(loose("2027-01-01T00:00:00Z")), "problem": load(guardrail.File{Name: "README.md"}),
		"only warn": load(guardrail.File{Name: "answers.json", Text: `{"only_warn": true, "reason": "x"}`}), "development": development,
	}
	seen := map[string]string{}
	for name, s := range sets {
		if other, twice := seen[s.Digest()]; twice {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[s.Digest()] = name
	}
	if load(rego, loose("2026-01-01T00:00:00Z")).Digest() != load(rego).Digest() {
		t.Error("a loosening that is over counts")
	}
	if (guardrail.Set{}).Digest() != "" {
		t.Error("no guardrails have a digest")
	}
}

func document(name string, o policy.Operation, body string) policy.Document {
	return policy.Document{Form: policy.FormObject, Of: "helm_chart", Component: "web", Name: name, Operation: o, Body: []byte(body)}
}

func said(name, document string, r policy.Result, on policy.Answer) policy.Verdict {
	return policy.Verdict{Policy: name, Document: document, Component: "web", Result: r, On: on}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"}}`
	created, same := document("ClusterRole r", policy.Create, role), document("ClusterRole s", policy.Update, role)
	same.Old = same.Body
	mine := guardrail.File{Name: "mine.rego", Text: "package berth"}
	answers := func(text string) guardrail.File {
		return guardrail.File{Name: "answers.json", Text: text}
	}
	for _, tc := range []struct {
		name    string
		set     guardrail.Set
		reply   []policy.Verdict
		failed  error
		doubts  []string
		agreed  bool
		no      bool // the guardrails are not asked
		want    policy.Answer
		changed func(*guardrail.Set)
	}{
		{name: "nothing stands against it", set: load(), reply: []policy.Verdict{said("guardrail:host-path", "ClusterRole r", policy.Pass, "")}, want: policy.Allow},
		{name: "a standard one means what the table says", set: load(), reply: []policy.Verdict{said("guardrail:host-path", "ClusterRole r", policy.Fail, "")}, want: policy.Ask},
		{name: "the vendor's policy of that name is none", set: load(), reply: []policy.Verdict{said("policy:host-path", "ClusterRole r", policy.Fail, "")}, want: policy.Allow},
		{name: "a guardrail that nobody has", set: load(), reply: []policy.Verdict{said("guardrail:other", "ClusterRole r", policy.Fail, "")}, want: policy.Allow},
		{name: "one of the customer's means what it says", set: load(mine), reply: []policy.Verdict{said("guardrail:mine", "ClusterRole r", policy.Fail, policy.Ask)}, want: policy.Ask},
		{name: "and denies where it says nothing", set: load(mine), reply: []policy.Verdict{said("guardrail:mine", "ClusterRole r", policy.Fail, "")}, want: policy.Deny},
		{name: "deny wins", set: load(mine), reply: []policy.Verdict{said("guardrail:mine", "ClusterRole r", policy.Fail, policy.Deny), said("guardrail:host-path", "ClusterRole r", policy.Fail, "")}, want: policy.Deny},
		{name: "what stays as it is passes", set: load(), reply: []policy.Verdict{said("guardrail:host-path", "ClusterRole s", policy.Fail, "")}, want: policy.Allow},
		{name: "an error asks", set: load(), reply: []policy.Verdict{said("guardrail:host-path", "ClusterRole r", policy.Error, "")}, want: policy.Ask},
		{name: "what is not known asks", set: load(mine), reply: []policy.Verdict{said("guardrail:mine", "ClusterRole r", policy.Unknown, policy.Warn)}, want: policy.Ask},
		{name: "no engine asks", set: load(), failed: errors.New("gone"), want: policy.Ask},
		{name: "a doubtful document asks", set: load(), doubts: []string{"it lies"}, want: policy.Ask},
		{name: "a file that does not count asks", set: load(guardrail.File{Name: "README.md"}), want: policy.Ask},
		{name: "a kind that was agreed to", set: load(), agreed: true, reply: []policy.Verdict{said("guardrail:cluster-scoped", "ClusterRole r", policy.Fail, "")}, want: policy.Allow},
		{name: "only where the guardrail asks once", set: load(), agreed: true, reply: []policy.Verdict{said("guardrail:rbac-escalation", "ClusterRole r", policy.Fail, "")}, want: policy.Ask},
		{name: "loosened", set: load(answers(`{"answers":[{"guardrail":"host-path","answer":"warn","reason":"x"}]}`)), reply: []policy.Verdict{said("guardrail:host-path", "ClusterRole r", policy.Fail, "")}, want: policy.Warn},
		{name: "loosened for another component", set: load(answers(`{"answers":[{"guardrail":"host-path","answer":"warn","reason":"x","components":["db"]}]}`)), reply: []policy.Verdict{said("guardrail:host-path", "ClusterRole r", policy.Fail, "")}, want: policy.Ask},
		{name: "loosened does not make an error pass", set: load(answers(`{"answers":[{"guardrail":"host-path","answer":"warn","reason":"x"}]}`)), reply: []policy.Verdict{said("guardrail:host-path", "ClusterRole r", policy.Error, "")}, want: policy.Ask},
		{name: "tightened", set: load(mine, answers(`{"answers":[{"guardrail":"mine","answer":"deny","reason":"x"}]}`)), reply: []policy.Verdict{said("guardrail:mine", "ClusterRole r", policy.Warning, policy.Warn)}, want: policy.Deny},
		{name: "the stricter of two answers counts", set: load(answers(`{"answers":[{"guardrail":"host-path","answer":"deny","reason":"x"},{"guardrail":"host-path","answer":"warn","reason":"y","components":["web"]}]}`)), reply: []policy.Verdict{said("guardrail:host-path", "ClusterRole r", policy.Fail, "")}, want: policy.Deny},
		{name: "in development they warn", set: load(), changed: func(s *guardrail.Set) { s.Development = true }, failed: errors.New("gone"), want: policy.Warn},
		{name: "as the customer wants they warn", set: load(answers(`{"only_warn":true,"reason":"x"}`)), reply: []policy.Verdict{said("guardrail:unaccepted-script", "ClusterRole r", policy.Fail, "")}, want: policy.Warn},
		{name: "a plan that changes nothing", set: load(guardrail.File{Name: "README.md"}), no: true, failed: errors.New("gone"), want: policy.Allow},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.changed != nil {
				tc.changed(&tc.set)
			}
			j := tc.set.Judge(guardrail.Asked{
				Case: policy.Case{Documents: []policy.Document{created, same}}, Guarded: !tc.no, Reply: policy.Reply{Engine: "e", Verdicts: tc.reply},
				Failed: tc.failed, Doubts: tc.doubts, Agreed: func(string, string) bool { return tc.agreed },
			})
			if j.Answer != tc.want {
				t.Errorf("got %s, want %s: %v", j.Answer, tc.want, j.Guardrails)
			}
		})
	}
}

// Without an engine each of the vendor's policies is in doubt, which the control plane denies.
func TestVendorsPoliciesWithoutAnEngine(t *testing.T) {
	t.Parallel()
	j := load().Judge(guardrail.Asked{Case: policy.Case{Rules: []policy.Rules{{Name: "a"}, {Name: "b"}}}, Failed: errors.New("gone")})
	if len(j.Vendor) != 2 || policy.Decide(j.Vendor, policy.Deny) != policy.Deny {
		t.Errorf("got %+v", j.Vendor)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	one := said("host-path", "d", policy.Fail, policy.Ask)
	with := func(change func(*policy.Judgement)) string {
		j := policy.Judgement{Answer: policy.Ask, Guardrails: []policy.Verdict{one}, Vendor: []policy.Verdict{said("v", "d", policy.Fail, "")}}
		change(&j)
		return guardrail.Verdict(j)
	}
	base := with(func(*policy.Judgement) {})
	for name, same := range map[string]string{
		"another message": with(func(j *policy.Judgement) { j.Guardrails[0].Message = "password" }),
		"a pass":          with(func(j *policy.Judgement) { j.Guardrails = append(j.Guardrails, said("x", "d", policy.Pass, "")) }),
		"another engine":  with(func(j *policy.Judgement) { j.Engine = "2" }),
	} {
		if same != base {
			t.Errorf("%s changes it", name)
		}
	}
	for name, other := range map[string]string{
		"the answer":         with(func(j *policy.Judgement) { j.Answer = policy.Deny }),
		"a rule":             with(func(j *policy.Judgement) { j.Guardrails[0].Rule = "r" }),
		"a document":         with(func(j *policy.Judgement) { j.Guardrails[0].Document = "e" }),
		"a result":           with(func(j *policy.Judgement) { j.Guardrails[0].Result = policy.Error }),
		"the vendor's":       with(func(j *policy.Judgement) { j.Vendor = nil }),
		"the sides swapped":  with(func(j *policy.Judgement) { j.Vendor, j.Guardrails = j.Guardrails, j.Vendor }),
		"what a failure is":  with(func(j *policy.Judgement) { j.Guardrails[0].On = policy.Warn }),
		"one more component": with(func(j *policy.Judgement) { j.Guardrails[0].Component = "db" }),
	} {
		if other == base {
			t.Errorf("%s does not change it", name)
		}
	}
}

func TestDoubts(t *testing.T) {
	t.Parallel()
	component := &jobspec.Resource{Kind: "component", Name: "web"}
	chart := jobspec.Spec{Kind: jobspec.KindHelmChart, Resource: component}
	module := jobspec.Spec{Kind: jobspec.KindTerraformModule, Resource: component}
	plan := func(body string) policy.Document {
		return policy.Document{Form: policy.FormPlan, Of: "terraform_module", Component: "web", Name: "plan", Body: []byte(body)}
	}
	const pod, canonical = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"a"}}`,
		`{"changes":[{"object":{"version":"v1","kind":"Pod","namespace":"shop","name":"a"},"action":"replace"},{"object":{"version":"v1","kind":"Pod","namespace":"shop","name":"b"},"action":"keep"}]}`
	gone := document("Pod shop/a", policy.Delete, "")
	gone.Old = []byte(pod)
	made := document("Pod shop/a", policy.Create, pod)
	elsewhere := made
	elsewhere.Component = "db"
	for _, tc := range []struct {
		name      string
		spec      jobspec.Spec
		canonical string
		documents []policy.Document
		want      string // in the one doubt; "" for none
	}{
		{"all there", chart, canonical, []policy.Document{gone, made}, ""},
		{"half of a replacement", chart, canonical, []policy.Document{made}, "no document is about the replace of Pod shop/a"},
		{"under another name", chart, strings.ReplaceAll(canonical, `"name":"a"`, `"name":"c"`), []policy.Document{gone, made}, "Pod shop/c"},
		{"of another component", chart, canonical, []policy.Document{gone, elsewhere}, "not about what was planned"},
		{"no object", chart, canonical, []policy.Document{{Form: policy.FormScript, Of: "helm_chart", Component: "web", Name: "x"}}, "is no object"},
		{"nothing at all", chart, canonical, nil, "no document is about"},
		{"too many", chart, canonical, slices.Repeat([]policy.Document{made}, guardrail.MaxDocuments+1), "more than 20000"},
		{"the plan", module, `{"plan":{"resource_changes":[{"address":"a","n":1.0}]}}`, []policy.Document{plan(`{"resource_changes": [{"n": 1.0, "address": "a"}]}`)}, ""},
		{"a plan of nothing", module, `{"plan":{}}`, []policy.Document{plan(`{}`)}, ""},
		{"another plan", module, `{"plan":{"resource_changes":[{"address":"a"}]}}`, []policy.Document{plan(`{"resource_changes":[{"address":"b"}]}`)}, "has other resource_changes"},
		{"a harmless plan in front", module, `{"plan":{"resource_changes":[{"address":"a"}]}}`, []policy.Document{plan(`{"resource_changes":[{"address":"a"}]}`), plan(`{}`)}, "or others"},
		{"no canonical plan", module, `[`, []policy.Document{plan(`{}`)}, "cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := guardrail.Doubts(tc.spec, []byte(tc.canonical), tc.documents)
			if (len(got) > 0) != (tc.want != "") || tc.want != "" && !strings.Contains(strings.Join(got, "\n"), tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOnces(t *testing.T) {
	t.Parallel()
	d := document("ClusterRole r", policy.Create, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"}}`)
	j := policy.Judgement{Guardrails: []policy.Verdict{
		said("cluster-scoped", d.Name, policy.Fail, policy.Ask), said("cluster-scoped", d.Name, policy.Fail, policy.Ask), said("host-path", d.Name, policy.Fail, policy.Ask),
		said("cluster-scoped", "other", policy.Error, ""),
	}}
	if diff := cmp.Diff([]guardrail.Kind{{Guardrail: "cluster-scoped", Kind: "ClusterRole.rbac.authorization.k8s.io"}}, guardrail.Onces(j, []policy.Document{d})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzReadAnswers(f *testing.F) {
	f.Add([]byte(`{"answers": [{"guardrail": "host-path", "answer": "allow", "reason": "x"}]}`))
	f.Add([]byte("{\n\"only_warn\": 1}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, line, err := guardrail.ReadAnswers(raw)
		if err != nil {
			if line < 1 {
				t.Errorf("%v in line %d", err, line)
			}
			return
		}
		for _, one := range a.Answers {
			if !one.Answer.Valid() || one.Reason == "" {
				t.Errorf("taken: %+v", one)
			}
		}
	})
}
