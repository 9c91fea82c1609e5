package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/policy"
)

func TestApplies(t *testing.T) {
	t.Parallel()
	chart := policy.Document{Form: policy.FormObject, Of: "helm_chart", Component: "web"}
	manifest := policy.Document{Form: policy.FormObject, Of: "kubernetes_manifest", Component: "rules"}
	module := policy.Document{Form: policy.FormPlan, Of: "terraform_module", Component: "db"}
	sandbox := policy.Document{Form: policy.FormPlan, Of: "terraform_module", Sandbox: true}
	image := policy.Document{Form: policy.FormImage, Of: "docker_build", Component: "web"}
	script := policy.Document{Form: policy.FormScript, Of: "action", Component: "rotate"}
	all := []policy.Document{chart, manifest, module, sandbox, image, script}
	footprints := []policy.Document{
		{Form: policy.FormFootprint, Of: "helm_chart", Component: "web"}, {Form: policy.FormFootprint, Of: "kubernetes_manifest", Component: "rules"},
		{Form: policy.FormFootprint, Of: "terraform_module", Component: "db"}, {Form: policy.FormFootprint, Of: "terraform_module", Sandbox: true},
	}
	vendors, customers := image, image
	vendors.Side, customers.Side = policy.SideVendor, policy.SideCustomer
	all = append(all, footprints...)
	plain := all[:6]
	for _, tc := range []struct {
		name  string
		rules policy.Rules
		want  []policy.Document
	}{
		{"no type is everything but footprints, which the text has to name", policy.Rules{}, plain},
		{"no type, and a text about footprints", policy.Rules{Text: "input.footprint"}, all},
		{"footprints of charts", policy.Rules{Type: policy.TypeHelmChart, Text: "footprint"}, []policy.Document{chart, footprints[0]}},
		{"footprints of what enters the cluster", policy.Rules{Type: policy.TypeKubernetesCluster, Text: "footprint"}, []policy.Document{chart, manifest, footprints[0], footprints[1]}},
		{"footprints of modules", policy.Rules{Type: policy.TypeTerraformModule, Text: "footprint"}, []policy.Document{module, footprints[2]}},
		{"footprints of the sandbox", policy.Rules{Type: policy.TypeSandbox, Text: "footprint"}, []policy.Document{sandbox, footprints[3]}},
		{"images have none", policy.Rules{Type: policy.TypeContainerImage, Text: "footprint"}, []policy.Document{image}},
		{"images as the vendor sees them", policy.Rules{Type: policy.TypeContainerImage, Side: policy.SideVendor}, []policy.Document{image, vendors}},
		{"images as the customer sees them", policy.Rules{Type: policy.TypeContainerImage, Side: policy.SideCustomer}, []policy.Document{image, customers}},
		{"images as no side alone sees them", policy.Rules{Type: policy.TypeContainerImage}, []policy.Document{image}},
		{"charts", policy.Rules{Type: policy.TypeHelmChart}, []policy.Document{chart}},
		{"charts, by the older name", policy.Rules{Type: policy.TypeHelmJob}, []policy.Document{chart}},
		{"manifests", policy.Rules{Type: policy.TypeKubernetesManifest}, []policy.Document{manifest}},
		{"what enters the cluster", policy.Rules{Type: policy.TypeKubernetesCluster}, []policy.Document{chart, manifest}},
		{"modules", policy.Rules{Type: policy.TypeTerraformModule}, []policy.Document{module}},
		{"modules, by the older name", policy.Rules{Type: policy.TypeTerraformJob}, []policy.Document{module}},
		{"the sandbox", policy.Rules{Type: policy.TypeSandbox}, []policy.Document{sandbox}},
		{"images", policy.Rules{Type: policy.TypeContainerImage}, []policy.Document{image}},
		{"scripts", policy.Rules{Type: policy.TypeActionJob}, []policy.Document{script}},
		{"a type that nobody knows", policy.Rules{Type: "pods"}, nil},
		{"of some components", policy.Rules{Components: []string{"web", "db"}}, []policy.Document{chart, module, image}},
		{"of all components", policy.Rules{Components: []string{"*"}}, plain},
		{"a component of no such name", policy.Rules{Type: policy.TypeHelmChart, Components: []string{"db"}}, nil},
		{"a sandbox is no component", policy.Rules{Type: policy.TypeSandbox, Components: []string{""}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []policy.Document
			for _, d := range append(slices.Clone(all), vendors, customers) {
				if tc.rules.Applies(d) {
					got = append(got, d)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	is := func(r policy.Result, on policy.Answer) policy.Verdict { return policy.Verdict{Result: r, On: on} }
	for _, tc := range []struct {
		name     string
		verdicts []policy.Verdict
		doubt    policy.Answer
		want     policy.Answer
	}{
		{"nobody says anything", nil, policy.Ask, policy.Allow},
		{"all pass", []policy.Verdict{is(policy.Pass, ""), is(policy.Skip, "")}, policy.Ask, policy.Allow},
		{"a failure denies", []policy.Verdict{is(policy.Pass, ""), is(policy.Fail, "")}, policy.Ask, policy.Deny},
		{"one that warns", []policy.Verdict{is(policy.Fail, policy.Warn), is(policy.Pass, "")}, policy.Ask, policy.Warn},
		{"one that asks", []policy.Verdict{is(policy.Fail, policy.Ask), is(policy.Warning, "")}, policy.Ask, policy.Ask},
		{"deny wins over everything", []policy.Verdict{is(policy.Fail, policy.Ask), is(policy.Fail, policy.Deny), is(policy.Pass, "")}, policy.Ask, policy.Deny},
		{"an error is no pass", []policy.Verdict{is(policy.Pass, ""), is(policy.Error, "")}, policy.Ask, policy.Ask},
		{"nor is what is not known", []policy.Verdict{is(policy.Unknown, policy.Warn)}, policy.Deny, policy.Deny},
		{"nor what nobody has heard of", []policy.Verdict{is("fine", "")}, policy.Ask, policy.Ask},
		{"an answer that nobody has heard of denies", []policy.Verdict{is(policy.Fail, "shrug"), is(policy.Fail, policy.Ask)}, policy.Ask, policy.Deny},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := policy.Decide(tc.verdicts, tc.doubt); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAgainst(t *testing.T) {
	t.Parallel()
	verdicts := []policy.Verdict{
		{Policy: "a", Document: "x", Result: policy.Pass},
		{Policy: "b", Document: "y", Result: policy.Fail, On: policy.Warn},
		{Policy: "b", Document: "x", Result: policy.Error},
		{Policy: "c", Rule: "r", Document: "x", Result: policy.Fail, Message: "no"},
	}
	var got []string
	for _, v := range policy.Against(verdicts, policy.Ask) {
		got = append(got, v.String())
	}
	if diff := cmp.Diff([]string{"x fail: c/r: no", "x error: b", "y fail: b"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDenies(t *testing.T) {
	t.Parallel()
	denial := func(doc string) policy.Verdict {
		return policy.Verdict{Policy: "p", Document: doc, Result: policy.Fail, Message: "no"}
	}
	for _, tc := range []struct {
		name string
		j    policy.Judgement
		want string
	}{
		{"nothing", policy.Judgement{}, ""},
		{"a warning", policy.Judgement{Vendor: []policy.Verdict{{Result: policy.Fail, On: policy.Warn}}}, ""},
		{"the customer's guardrails are not the vendor's", policy.Judgement{Guardrails: []policy.Verdict{denial("a")}}, ""},
		{"a denial", policy.Judgement{Vendor: []policy.Verdict{denial("a"), {Result: policy.Pass}}}, "denied by policy: a fail: p: no"},
		{"doubt", policy.Judgement{Vendor: []policy.Verdict{{Policy: "p", Document: "a", Result: policy.Unknown, On: policy.Warn}}}, "denied by policy: a unknown: p"},
		{"many", policy.Judgement{Vendor: []policy.Verdict{denial("a"), denial("b"), denial("c"), denial("d"), denial("e")}},
			"denied by policy: a fail: p: no; b fail: p: no; c fail: p: no; and 2 more"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.j.Denies(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReadReply(t *testing.T) {
	t.Parallel()
	request := policy.Request{
		Rules:     []policy.Rules{{Name: "one"}, {Name: "images", Type: policy.TypeContainerImage}},
		Documents: []policy.Document{{Form: policy.FormObject, Name: "Pod a/b", Component: "web"}},
	}
	good := policy.Verdict{Policy: "one", Document: "Pod a/b", Component: "web", Result: policy.Pass}
	with := func(change func(*policy.Reply)) string {
		r := policy.Reply{Engine: "berth-policy 1", Verdicts: []policy.Verdict{good}}
		change(&r)
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for _, tc := range []struct{ name, reply, wrong string }{
		{"an answer", with(func(*policy.Reply) {}), ""},
		{"nothing", "", "no JSON"},
		{"half of one", `{"engine": "x", "verd`, "no JSON"},
		{"without the engine's name", with(func(r *policy.Reply) { r.Engine = "" }), "does not say what it is"},
		{"a document left out", with(func(r *policy.Reply) { r.Verdicts = nil }), "does not answer what policy one says of Pod a/b"},
		{"that of another component", with(func(r *policy.Reply) { r.Verdicts[0].Component = "db" }), "does not answer"},
		{"a result that nobody knows", with(func(r *policy.Reply) { r.Verdicts[0].Result = "fine" }), `"fine"`},
		{"an answer that nobody knows", with(func(r *policy.Reply) { r.Verdicts[0].On = "shrug" }), `"shrug"`},
		{"too many", with(func(r *policy.Reply) { r.Verdicts = make([]policy.Verdict, policy.MaxVerdicts+1) }), "more than 100000"},
		{"too long", `{"engine":"` + strings.Repeat("x", policy.MaxReply), "more than 33554432 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := policy.ReadReply(strings.NewReader(tc.reply), request)
			switch {
			case tc.wrong == "" && err != nil:
				t.Error(err)
			case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
				t.Errorf("got %v, want one that says %q", err, tc.wrong)
			}
		})
	}
	long, err := policy.ReadReply(strings.NewReader(with(func(r *policy.Reply) { r.Verdicts[0].Message = strings.Repeat("é", policy.MaxMessage) })), request)
	if err != nil || len(long.Verdicts[0].Message) > policy.MaxMessage {
		t.Errorf("a long message: %d bytes, %v", len(long.Verdicts[0].Message), err)
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte(`{"engine":"x","verdicts":[{"policy":"one","document":"d","result":"pass"}]}`))
	f.Add([]byte(`{"engine":"x","verdicts":[{"result":"fail","on":"ask","message":"\ud800"}]}`))
	request := policy.Request{Rules: []policy.Rules{{Name: "one"}}, Documents: []policy.Document{{Name: "d"}}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		reply, err := policy.ReadReply(strings.NewReader(string(raw)), request)
		if err != nil {
			return
		}
		if len(reply.Verdicts) == 0 {
			t.Error("a reply that leaves a document out was taken")
		}
		for _, v := range reply.Verdicts {
			if len(v.Message) > policy.MaxMessage || !v.Answer(policy.Ask).Valid() {
				t.Errorf("taken: %+v", v)
			}
		}
	})
}
