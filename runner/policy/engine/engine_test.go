package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/engine"
)

// shared keeps what is compiled for all tests.
var shared = engine.New()

func kyverno(text string) policy.Rules {
	return policy.Rules{Name: "p", Language: policy.Kyverno, Text: text, File: "p.yaml"}
}

func rego(text string) policy.Rules {
	return policy.Rules{Name: "p", Language: policy.Rego, Text: text, File: "p.rego"}
}

// validating is a ValidatingPolicy; spec follows, indented by two.
func validating(annotations, spec string) policy.Rules {
	return kyverno("apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata:\n  name: v\n  annotations: {" + annotations + "}\nspec:\n" + spec)
}

// cluster is a ClusterPolicy with one rule, "r", that is the same for all of these kinds.
func cluster(annotations, kinds, rule string) policy.Rules {
	return kyverno("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata:\n  name: c\n  annotations: {" + annotations + "}\nspec:\n  rules:\n  - name: r\n" +
		"    match: {any: [{resources: {kinds: [" + kinds + "]}}]}\n" + rule)
}

const pods = `  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}
`

func object(operation policy.Operation, body, old string) policy.Document {
	return policy.Document{Form: policy.FormObject, Of: "helm_chart", Name: "d", Component: "web", Operation: operation, Body: json.RawMessage(body), Old: json.RawMessage(old)}
}

func pod(spec string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","labels":{"app":"web"}},"spec":` + spec + `}`
}

const (
	calm       = `{"containers":[{"name":"a","image":"x:1"}]}`
	privileged = `{"containers":[{"name":"a","image":"x:1","securityContext":{"privileged":true}}]}`
)

func deployment(spec string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":` + spec + `}}}`
}

// said is a verdict in few words.
func said(v policy.Verdict) string {
	text := string(v.Result)
	if v.On != "" {
		text += " " + string(v.On)
	}
	if v.Rule != "" {
		text += " " + v.Rule
	}
	return text
}

const (
	noPrivileged = "  validationActions: [Deny]\n" + pods + "  validations:\n  - message: privileged\n    expression: object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false))\n"
	needsTeam    = "    validate:\n      failureAction: Enforce\n      message: needs a team\n      pattern: {metadata: {labels: {team: '?*'}}}\n"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	plan := policy.Document{Form: policy.FormPlan, Of: "terraform_module", Name: "d", Component: "db", Body: json.RawMessage(`{"resource_changes":[{"address":"aws_db.a","change":{"actions":["delete","create"]}}]}`)}
	image := policy.Document{Form: policy.FormImage, Name: "d", Body: json.RawMessage(`{"image":"docker.io/x","tag":"latest","digest":"sha256:1","metadata":{"signed":false}}`)}
	script := policy.Document{Form: policy.FormScript, Name: "d", Body: json.RawMessage(`{"text":"rm -rf /","accepted":false}`)}
	release := policy.Document{Form: policy.FormRelease, Name: "d", Body: json.RawMessage(`{"number":7}`)}
	keepsData := validating("", "  evaluation: {mode: JSON}\n  validationActions: [Deny]\n  matchConditions:\n  - {name: plan, expression: has(object.resource_changes)}\n"+
		"  validations:\n  - messageExpression: \"'destroys ' + object.resource_changes[0].address\"\n    expression: \"object.resource_changes.all(r, !('delete' in r.change.actions))\"\n")
	create := func(body string) policy.Document { return object(policy.Create, body, "") }
	for _, tc := range []struct {
		name     string
		rules    policy.Rules
		document policy.Document
		want     []string
	}{
		// ValidatingPolicy.
		{"a pod that is fine", validating("", noPrivileged), create(pod(calm)), []string{"pass"}},
		{"a pod that is not", validating("", noPrivileged), create(pod(privileged)), []string{"fail deny"}},
		{"what makes such pods", validating("", noPrivileged), create(deployment(privileged)), []string{"fail deny"}},
		{"an object of another kind", validating("", noPrivileged), create(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"shop"}}`), []string{"skip"}},
		{"the annotation wins", validating("berth.dev/answer: ask", noPrivileged), create(pod(privileged)), []string{"fail ask"}},
		{"one that does not count", validating("policies.kyverno.io/scored: 'false'", noPrivileged), create(pod(privileged)), []string{"warn warn"}},
		{"audit", validating("", strings.Replace(noPrivileged, "Deny", "Audit", 1)), create(pod(privileged)), []string{"warn warn"}},
		{"the second of several", validating("", noPrivileged+"  - expression: object.metadata.name == 'other'\n"), create(pod(calm)), []string{"fail deny validations[1]"}},
		{"of a plan", keepsData, plan, []string{"fail deny"}},
		{"of a plan, an object", keepsData, create(pod(calm)), []string{"skip"}},
		{"of a plan, something else", keepsData, image, []string{"skip"}},
		{"of objects, a plan", validating("", noPrivileged), plan, []string{"skip"}},
		{
			"an error in a condition is no way around", validating("", noPrivileged+"  failurePolicy: Ignore\n  matchConditions:\n  - {name: a, expression: object.nothing.at.all == 'a'}\n"),
			create(pod(privileged)), []string{"error"},
		},
		{"a delete", validating("", pods+"  validations:\n  - expression: request.operation != 'DELETE' || oldObject.metadata.name != 'web'\n"), object(policy.Delete, "", pod(calm)), []string{"fail deny"}},
		{"an update", validating("", pods+"  validations:\n  - expression: object.spec == oldObject.spec\n"), object(policy.Update, pod(calm), pod(privileged)), []string{"fail deny"}},
		{"a resource of the cluster", validating("", pods+"  validations:\n  - expression: resource.Get('v1', 'configmaps', 'a', 'b').data.a == 'b'\n"), create(pod(calm)), []string{"unknown"}},
		{"who does it", validating("", pods+"  validations:\n  - expression: request.userInfo.username != 'bob'\n"), create(pod(calm)), []string{"unknown"}},
		{
			"an exception in the same file",
			kyverno(validating("", noPrivileged).Text + "---\napiVersion: policies.kyverno.io/v1beta1\nkind: PolicyException\nmetadata: {name: e, namespace: shop}\nspec:\n  policyRefs: [{name: v, kind: ValidatingPolicy}]\n  matchConditions: [{name: web, expression: object.metadata.name == 'web'}]\n"),
			create(pod(privileged)), []string{"skip"},
		},

		// ClusterPolicy and Policy.
		{"a pattern", cluster("", "Pod", needsTeam), create(pod(calm)), []string{"fail deny r"}},
		{"a pattern, of what makes pods", cluster("", "Pod", strings.Replace(needsTeam, "{metadata: {labels: {team: '?*'}}}", "{spec: {containers: [{image: '!*:latest'}]}}", 1)), create(deployment(calm)), []string{"pass autogen-r"}},
		{"audit is what Kyverno takes when nothing is said", cluster("", "Pod", strings.Replace(needsTeam, "      failureAction: Enforce\n", "", 1)), create(pod(calm)), []string{"warn warn r"}},
		{"the annotation wins there too", cluster("berth.dev/answer: deny", "Pod", strings.Replace(needsTeam, "      failureAction: Enforce\n", "", 1)), create(pod(calm)), []string{"fail deny r"}},
		{"another kind", cluster("", "Service", needsTeam), create(pod(calm)), []string{"skip"}},
		{"any of several", cluster("", "Pod", "    validate:\n      failureAction: Enforce\n      anyPattern: [{metadata: {labels: {team: '?*'}}}, {metadata: {labels: {app: '?*'}}}]\n"), create(pod(calm)), []string{"pass r"}},
		{
			"for each container", cluster("", "Pod", "    validate:\n      failureAction: Enforce\n      message: no\n      foreach:\n      - list: request.object.spec.containers\n        deny: {conditions: {any: [{key: '{{ element.image }}', operator: Equals, value: 'x:1'}]}}\n"),
			create(pod(calm)), []string{"error"},
		},
		{"CEL", cluster("", "Pod", "    validate:\n      failureAction: Enforce\n      cel: {expressions: [{expression: 'object.metadata.name != \"web\"'}]}\n"), create(pod(calm)), []string{"fail deny r"}},
		{"the standards for pods", cluster("", "Pod", "    validate:\n      failureAction: Enforce\n      podSecurity: {level: baseline, version: latest}\n"), create(pod(privileged)), []string{"fail deny r"}},
		{
			"a namespace whose labels are not known", kyverno(strings.Replace(cluster("", "Pod", needsTeam).Text, "kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {tier: gold}}", 1)),
			create(pod(calm)), []string{"unknown r"},
		},
		{
			"roles of who does it", kyverno(strings.Replace(cluster("", "Pod", needsTeam).Text, "kinds: [Pod]}}]}\n", "kinds: [Pod]}, clusterRoles: [admin]}]}\n", 1) + "  background: false\n"),
			create(pod(calm)), []string{"fail deny r"},
		},
		{
			"what a cluster would say, and a default", cluster("", "Pod", "    context:\n    - {name: answer, apiCall: {urlPath: /api/v1/namespaces}}\n    validate:\n      failureAction: Enforce\n      deny: {conditions: {any: [{key: \"{{ answer || 'none' }}\", operator: Equals, value: bad}]}}\n"),
			create(pod(calm)), []string{"unknown r"},
		},
		{"images to be verified", cluster("", "Pod", "    verifyImages:\n    - imageReferences: ['*']\n      mutateDigest: false\n      attestors: [{entries: [{keys: {publicKeys: '-----BEGIN PUBLIC KEY-----\n\n          MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8nXRh950IZbRj8Ra/N9sbqOPZrfM\n\n          5/KAQN0/KjHcorm/J5yctVd7iEcnessRQjU917hmKO6JWVGHpDguIyakZA==\n\n          -----END PUBLIC KEY-----'}}]}]\n"), create(pod(calm)), []string{"unknown r"}},
		{"one that only changes", cluster("", "Pod", "    mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}\n"), create(pod(calm)), []string{"skip"}},
		{"a plan", cluster("", "Pod", needsTeam), plan, []string{"skip"}},
		{
			"several in one file", kyverno(validating("", noPrivileged).Text + "---\n" + cluster("", "Pod", needsTeam).Text), create(pod(calm)),
			[]string{"fail deny c/r", "pass v"},
		},

		// Rego.
		{"no rule speaks", rego("package berth\ndeny contains \"x\" if false\n"), create(pod(calm)), []string{"pass"}},
		{"all rules speak", rego("package nuon\ndeny contains \"x\" if true\nask contains {\"msg\": \"y\", \"severity\": \"high\"} if true\nwarn := [\"z\"]\n"), create(pod(calm)), []string{"fail deny deny", "fail ask ask", "warn warn warn"}},
		{"of an object", rego("package berth\ndeny contains input.review.kind.kind if input.review.object.metadata.name == \"web\"\n"), create(pod(calm)), []string{"fail deny deny"}},
		{"of a delete", rego("package berth\nask contains \"x\" if { input.review.operation == \"DELETE\"; input.review.object == null; input.review.oldObject.kind == \"Pod\" }\n"), object(policy.Delete, "", pod(calm)), []string{"fail ask ask"}},
		{"a plan", rego("package nuon\ndeny contains r.address if { some r in input.plan.resource_changes; \"delete\" in r.change.actions }\n"), plan, []string{"fail deny deny"}},
		{"an image", rego("package nuon\ndeny contains input.image if { input.tag == \"latest\"; not input.metadata.signed }\n"), image, []string{"fail deny deny"}},
		{"a script", rego("package berth\ndeny contains \"x\" if not input.script.accepted\n"), script, []string{"fail deny deny"}},
		{"a release", rego("package berth\nwarn contains \"x\" if input.release.number == 7\n"), release, []string{"warn warn warn"}},
		{"as it was before 1.0", policy.Rules{Name: "p", Language: policy.Rego, RegoV0: true, Text: "package nuon\ndeny[msg] { msg := \"x\" }\n"}, create(pod(calm)), []string{"fail deny deny"}},
		{"an object without a message", rego("package berth\ndeny contains {\"text\": \"x\"} if true\n"), create(pod(calm)), []string{"error"}},
		{"a function that fails", rego("package berth\ndeny contains \"x\" if to_number(\"a\") == 1\n"), create(pod(calm)), []string{"error"}},
		{"no rule that counts", rego("package berth\nallow := true\n"), create(pod(calm)), []string{"error"}},
		{"another package", rego("package main\ndeny contains \"x\" if true\n"), create(pod(calm)), []string{"error"}},
		{"no language that is known", policy.Rules{Name: "p", Language: "cue", Text: "a: 1"}, create(pod(calm)), []string{"error"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			reply := shared.Judge(t.Context(), policy.Request{Rules: []policy.Rules{tc.rules}, Documents: []policy.Document{tc.document}})
			var got []string
			for _, v := range reply.Verdicts {
				got = append(got, said(v))
				if v.Policy != "p" || v.Document != "d" || v.Component != tc.document.Component {
					t.Errorf("it does not say whose it is: %+v", v)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, reply.Verdicts)
			}
		})
	}
}

// Namespaces whose labels are known are asked for them.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	selects := kyverno(strings.Replace(cluster("", "Pod", needsTeam).Text, "kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {tier: gold}}", 1))
	cel := validating("", "  matchConstraints:\n    namespaceSelector: {matchLabels: {tier: gold}}\n"+strings.TrimPrefix(pods, "  matchConstraints:\n")+"  validations:\n  - expression: \"false\"\n")
	for _, tc := range []struct {
		labels map[string]string
		want   policy.Result
	}{{map[string]string{"tier": "gold"}, policy.Fail}, {map[string]string{"tier": "tin"}, policy.Skip}, {nil, policy.Unknown}} {
		r := policy.Request{Rules: []policy.Rules{selects, cel}, Documents: []policy.Document{object(policy.Create, pod(calm), "")}}
		if tc.labels != nil {
			r.Namespaces = map[string]map[string]string{"shop": tc.labels}
		}
		for _, v := range shared.Judge(t.Context(), r).Verdicts {
			if v.Result != tc.want {
				t.Errorf("labels %v: %v, want %s", tc.labels, v, tc.want)
			}
		}
	}
}

// Rules of a request see one moment, whenever they run.
func TestOneMoment(t *testing.T) {
	t.Parallel()
	r := policy.Request{Rules: []policy.Rules{rego("package berth\nwarn contains sprintf(\"%d\", [time.now_ns()]) if true\n")}}
	for i := range 50 {
		d := object(policy.Create, pod(calm), "")
		d.Name = fmt.Sprint(i)
		r.Documents = append(r.Documents, d)
	}
	verdicts := shared.Judge(t.Context(), r).Verdicts
	for _, v := range verdicts {
		if v.Message != verdicts[0].Message || v.Result != policy.Warning {
			t.Errorf("%v, and %v", verdicts[0], v)
		}
	}
}

// A file that does not load is an error of each document that it looks at, with its line.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		rules policy.Rules
		want  string // what the message begins with
		says  string
	}{
		{"a function that reaches out", rego("package berth\n\ndeny contains x if {\n  x := http.send({})\n}\n"), "p.rego:4: ", "http.send"},
		{"chance", rego("package berth\ndeny contains x if { x := rand.intn(\"a\", 3) }\n"), "p.rego:2: ", "rand.intn"},
		{"Rego that is none", rego("package berth\ndeny contains if\n"), "p.rego:2: ", ""},
		{"a key that Kyverno does not know", kyverno(cluster("", "Pod", needsTeam).Text + "---\n" + strings.Replace(cluster("", "Pod", needsTeam).Text, "message:", "massage:", 1)), "p.yaml:26: ", "massage"},
		{"CEL that does not compile", validating("", pods+"  validations:\n  - expression: \"true\"\n  - expression: object.(\n"), "p.yaml:12: ", "Syntax error"},
		{"YAML that is none", kyverno("apiVersion: kyverno.io/v1\nkind: [ClusterPolicy\nmetadata: {}\n"), "p.yaml:", "yaml"},
		{"an annotation that nobody knows", validating("berth.dev/answer: shrug", noPrivileged), "p.yaml:5: ", "shrug"},
		{"no policy", kyverno("# nothing\n"), "p.yaml:1: ", "no policy"},
		{"an object that is no policy", kyverno("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), "p.yaml:", "ConfigMap"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			verdicts := shared.Judge(t.Context(), policy.Request{Rules: []policy.Rules{tc.rules}, Documents: []policy.Document{object(policy.Create, pod(calm), "")}}).Verdicts
			if len(verdicts) != 1 || verdicts[0].Result != policy.Error || !strings.HasPrefix(verdicts[0].Message, tc.want) || !strings.Contains(verdicts[0].Message, tc.says) {
				t.Errorf("got %v, want one that begins with %q and says %q", verdicts, tc.want, tc.says)
			}
		})
	}
}

// seeds are files that FuzzRules and TestChangedRules begin with.
func seeds() []policy.Rules {
	return []policy.Rules{
		validating("", noPrivileged), cluster("", "Pod", needsTeam), rego("package berth\ndeny contains input.review.object.kind if true\n"),
		kyverno("apiVersion: v1\nkind: List\nitems:\n- apiVersion: kyverno.io/v1\n  kind: ClusterPolicy\n"), kyverno("a: &a [*a]"), kyverno("--- \n---\n\t"),
	}
}

// holds judges a file, whatever is in it, and checks that the reply keeps the contract.
func holds(t *testing.T, rules policy.Rules) {
	t.Helper()
	r := policy.Request{Rules: []policy.Rules{rules}, Documents: []policy.Document{object(policy.Create, pod(privileged), "")}}
	raw, err := engine.Encode(engine.New().Judge(t.Context(), r))
	if err != nil {
		t.Fatalf("%q: %v", rules.Text, err)
	}
	if _, err := policy.ReadReply(strings.NewReader(string(raw)), r); err != nil {
		t.Errorf("%q: %v", rules.Text, err)
	}
}

// FuzzRules: whatever a file has in it, each document gets a verdict of the contract.
func FuzzRules(f *testing.F) {
	for _, r := range seeds() {
		f.Add(r.Language == policy.Rego, r.Text)
	}
	f.Fuzz(func(t *testing.T, isRego bool, text string) {
		if isRego {
			holds(t, rego(text))
			return
		}
		holds(t, kyverno(text))
	})
}

// TestChangedRules is a slice of FuzzRules that needs no instrumented build of Kyverno, which takes tens
// of gigabytes: files that were cut, mixed and filled with words of the languages. BERTH_CHANGED_RULES
// says how many, the seed is always the same.
func TestChangedRules(t *testing.T) {
	t.Parallel()
	n := 300
	if text := os.Getenv("BERTH_CHANGED_RULES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	words := strings.Fields("{ } [ ] ( ) : - | > & * ! , \" ' 0 -1 1e309 null true apiVersion: kind: spec: rules: match: any: all: validate: pattern: deny: foreach: cel: expressions: expression: " +
		"object.spec has( .orValue( {{request.object}} {{ }} import default contains some every if else := == package data.lib input http.send( opa.runtime() \t \n \u0000 \xff")
	random := rand.New(rand.NewPCG(14, 9))
	all := seeds()
	for range n {
		r := all[random.IntN(len(all))]
		text := r.Text
		for range 1 + random.IntN(6) {
			at := random.IntN(len(text) + 1)
			switch end := min(len(text), at+random.IntN(40)); random.IntN(4) {
			case 0:
				text = text[:at] + text[end:]
			case 1:
				text = text[:at] + words[random.IntN(len(words))] + text[at:]
			case 2:
				text = text[:end] + text[at:]
			case 3:
				other := all[random.IntN(len(all))].Text
				from := random.IntN(len(other))
				text = text[:at] + other[from:] + text[end:]
			}
		}
		r.Text = text
		holds(t, r)
	}
}
