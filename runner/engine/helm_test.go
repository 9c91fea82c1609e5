package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestHelmInstallUpgradeAndNoOp(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{
		"templates/one.yaml":  oneMap,
		"templates/two.yaml":  configMap("two", "{{ .Release.IsUpgrade }}"),
		"templates/NOTES.txt": "The value is {{ .Values.value }}.",
	})
	plan, r := c.plan(t)
	if r.NoChange {
		t.Error("the first plan changes nothing")
	}
	want := []string{"create Namespace NS", "create ConfigMap NS/one", "create ConfigMap NS/two", "install Release NS/web"}
	got := c.summary(t, plan)
	got[3] = strings.Fields(got[3])[0] + " " + strings.Join(strings.Fields(got[3])[1:3], " ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if c.get(t, "Namespace/"+c.namespace) != nil {
		t.Error("a plan made the namespace")
	}
	apply := c.applyJob(t, plan)
	result := apply.must(t)
	if diff := cmp.Diff(`{"key":"one"}`, c.data(t, "one")); diff != "" {
		t.Error(diff)
	}
	var about struct {
		Name, Namespace, Version string
		Revision                 int
	}
	if err := json.Unmarshal(result.Outputs["release"].Value, &about); err != nil {
		t.Fatal(err)
	}
	if about.Name != "web" || about.Namespace != c.namespace || about.Version != "1.0.0" || about.Revision != 1 {
		t.Errorf("output release is %+v", about)
	}
	if !result.Outputs["manifest"].Sensitive {
		t.Error("the manifest is not sensitive")
	}

	// The second template differs between install and upgrade; then nothing does.
	c.roll(t)
	if diff := cmp.Diff(`{"key":"true"}`, c.data(t, "two")); diff != "" {
		t.Error(diff)
	}
	_, r = c.plan(t)
	if !r.NoChange {
		t.Error("a plan of the same changes something")
	}
	if diff := cmp.Diff([]release.Status{release.StatusSuperseded, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	// One value changes one field.
	c.values = map[string]string{"value": "two"}
	plan, _ = c.plan(t)
	want = []string{`update ConfigMap NS/one data.key: "one" -> "two"`, "upgrade Release NS/web"}
	if diff := cmp.Diff(want, c.summary(t, plan)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`{"key":"one"}`, c.data(t, "one")); diff != "" {
		t.Errorf("a plan wrote: %s", diff)
	}
	c.applyJob(t, plan).must(t)
	if diff := cmp.Diff(`{"key":"two"}`, c.data(t, "one")); diff != "" {
		t.Error(diff)
	}

	// What is no longer in the chart goes; another version alone is a change.
	delete(c.chart, "templates/two.yaml")
	c.chart["Chart.yaml"] = strings.Replace(chartYAML, "1.0.0", "1.1.0", 1)
	plan, _ = c.plan(t)
	want = []string{"delete ConfigMap NS/two (no longer in the chart)", `upgrade Release NS/web chart.version: "1.0.0" -> "1.1.0"`}
	if diff := cmp.Diff(want, c.summary(t, plan)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	c.applyJob(t, plan).must(t)
	if got := c.data(t, "two"); got != "absent" {
		t.Errorf("the second is %s", got)
	}
	c.chart["Chart.yaml"] = strings.Replace(chartYAML, "1.0.0", "1.2.0", 1)
	if _, r = c.plan(t); r.NoChange {
		t.Error("another version of the chart is no change")
	}
}

func TestHelmTeardown(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{
		"templates/one.yaml": oneMap,
		// Go's runtime writes what it begins with to the log.
		"templates/job.yaml": hookJob("before-delete", "pre-delete", true) + "          env: [{name: GODEBUG, value: inittrace=1}]\n",
	})
	c.roll(t)
	plan, _ := c.planDestroy(t)
	got := c.summary(t, plan)
	for i, want := range []string{"delete ConfigMap NS/one", "delete Namespace NS", "uninstall Release NS/web", "run Job before-delete "} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Fatalf("summary is\n%s\nwant %s", strings.Join(got, "\n"), want)
		}
	}
	if !strings.HasSuffix(got[3], "(pre-delete hook)") {
		t.Errorf("summary does not say that it is a hook: %s", got[3])
	}
	apply := c.applyJob(t, plan)
	apply.must(t)
	wantContains(t, "log", apply.log(t), "hook Job/before-delete is done")
	wantContains(t, "log", apply.log(t), ", container hook: init internal/")
	if c.get(t, "Namespace/"+c.namespace) != nil {
		t.Error("the namespace is still there")
	}
	plan, r := c.planDestroy(t)
	if !r.NoChange {
		t.Errorf("there is more to remove: %v", c.summary(t, plan))
	}
	c.applyJob(t, plan).must(t)
}

func TestHelmKeepsSecrets(t *testing.T) {
	t.Parallel()
	const first, second = "first-secret-value", "second-secret-value"
	c := chart(t, map[string]string{
		"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: {{ .Values.password | quote }}}\n",
	})
	for _, secret := range []string{first, second} {
		c.values = map[string]string{"password": secret}
		plan, apply := c.roll(t)
		var result jobspec.Result
		apply.readJSON(t, "out/result.json", &result)
		if !strings.Contains(string(result.Outputs["manifest"].Value), secret) || !result.Outputs["manifest"].Sensitive {
			t.Error("the manifest is not the whole one, or not sensitive")
		}
		delete(result.Outputs, "manifest") // the agent seals it
		left, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		shown := plan.log(t) + apply.log(t) + plan.read(t, "out/plan.summary.json") + plan.read(t, "out/result.json") + string(left)
		if strings.Contains(shown, secret) || strings.Contains(shown, base64.StdEncoding.EncodeToString([]byte(secret))) {
			t.Errorf("the secret is shown:\n%s", shown)
		}
		wantContains(t, "summary", plan.read(t, "out/plan.summary.json"), "(sensitive)")
	}
}

func TestHelmHistoryIsThatOfHelm(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap, "charts/part/Chart.yaml": "apiVersion: v2\nname: part\nversion: 0.1.0\n", "charts/part/values.yaml": "color: red\n"})
	c.values = map[string]string{"value": "1.5", "size": "3"}
	c.helm(t, "version")
	c.roll(t)
	c.values["size"] = "4"
	c.roll(t)
	list := c.helm(t, "list")
	for _, want := range []string{"web", "deployed", "web-1.0.0", "2.0"} {
		wantContains(t, "helm list", list, want)
	}
	wantContains(t, "helm history", c.helm(t, "history", "web"), "superseded")
	wantContains(t, "helm get values", c.helm(t, "get", "values", "web"), "size: 4\nvalue: \"1.5\"")
	wantContains(t, "helm get values --all", c.helm(t, "get", "values", "--all", "web"), "color: red")
	if diff := cmp.Diff(c.revisions(t)[1].Manifest+"\n", c.helm(t, "get", "manifest", "web")); diff != "" {
		t.Errorf("helm get manifest (-want +got):\n%s", diff)
	}
	// A rollback by the customer moves the release under a plan.
	c.values["size"] = "5"
	plan, _ := c.plan(t)
	c.helm(t, "rollback", "web", "1")
	r := c.applyJob(t, plan).run(t)
	if r.Outcome != jobspec.OutcomeStale {
		t.Fatalf("outcome %s: %s", r.Outcome, r.Error)
	}
	wantContains(t, "error", r.Error, "Release/web: deployed revision is 3, expected 2")
}
