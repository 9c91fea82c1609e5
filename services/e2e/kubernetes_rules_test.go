package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
)

// noPrivileged is a policy of the vendor about pods of charts.
const noPrivileged = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata:
  name: no-privileged
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
    - expression: "!object.spec.template.spec.containers.exists(c, c.?securityContext.?privileged.orValue(false))"
      message: the vendor ships no privileged containers
`

// keyIsData is a guardrail of the customer: the key of the shop's visitors is data.
const keyIsData = `package berth

ask contains msg if {
	some r in input.plan.resource_changes
	r.name == "session_key"
	"delete" in r.change.actions
	msg := sprintf("%s would be replaced", [r.address])
}
`

// ruled is an install on a cluster whose customer has rules and a key in an ssh-agent.
type ruled struct {
	*shop
	ada sshAgent
}

// own is what the customer does on the runner's machine.
func (r *ruled) own(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.bin, "berth-runner"), append([]string{"--data", r.runnerDir()}, args...)...)
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+r.ada.socket)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("berth-runner %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// asked waits until a deploy waits for the customer, for a reason that says said.
func (r *ruled) asked(workflowID, said string) (changeID, effect string) {
	r.t.Helper()
	r.eventually(rolloutTimeout, "the customer is asked: "+said, func() error {
		for _, step := range r.workflow(workflowID).Steps {
			if step.Wait != nil && step.Wait.Reason == "consent" && step.Change != nil {
				changeID = step.Change.ID
			}
		}
		if why := r.must("why", r.name); changeID == "" || !strings.Contains(why, said) {
			return errors.New(why)
		}
		return nil
	})
	var open []struct {
		Change string `json:"change_id"`
		Effect string `json:"effect_digest"`
	}
	if err := json.Unmarshal([]byte(r.own("changes", "--waiting", "-o", "json")), &open); err != nil {
		r.t.Fatal(err)
	}
	for _, c := range open {
		if c.Change == changeID {
			return changeID, c.Effect
		}
	}
	r.t.Fatalf("the runner does not list %s: %+v", changeID, open)
	return "", ""
}

// settles waits for the end of a deploy.
func (r *ruled) settles(workflowID, state string) {
	r.t.Helper()
	if w := r.finished(workflowID, rolloutTimeout); string(w.State) != state {
		r.t.Fatalf("it is %s, want %s: %s", w.State, state, r.explain(w))
	}
}

// agreeing sets whose consent counts, and for what.
func (r *ruled) agreeing(mode consent.Mode) {
	r.t.Helper()
	public, err := os.ReadFile(r.ada.public)
	if err != nil {
		r.t.Fatal(err)
	}
	r.trusts("consent", consent.Config{Mode: mode, Holders: []consent.Holder{{Name: "ada", Keys: []string{string(public)}}}})
}

// trusts sets a key of the runner's trust.json.
func (in *install) trusts(key string, value any) {
	in.t.Helper()
	path := filepath.Join(in.runnerDir(), "trust.json")
	text, err := os.ReadFile(path)
	if err != nil {
		in.t.Fatal(err)
	}
	trust := map[string]any{}
	if err := json.Unmarshal(text, &trust); err != nil {
		in.t.Fatal(err)
	}
	trust[key] = value
	if text, err = json.Marshal(trust); err != nil {
		in.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		in.t.Fatal(err)
	}
}

// rules puts standing rules in force that agree to deploys of the web until a time.
func (r *ruled) rules(version int, expires time.Time, more string) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "rules.toml")
	text := fmt.Sprintf("version = %d\ninstall = %q\nexpires = %s\ntime_zone = \"UTC\"\n%s\n[[rule]]\nname = \"web\"\nchanges = [\"deploy\", \"accept\", \"script\"]\ncomponents = [\"web\", \"seed\", \"rel_*\"]\nguardrail_asks = true\n",
		version, r.id, expires.UTC().Format(time.RFC3339), more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.own("consent", "rules", "sign", file, "--ssh-key", r.ada.public, "--out", file+".signed", "--yes", capsule.DigestBytes([]byte(text)))
	r.own("consent", "rules", "put", file+".signed")
}

const privileged = `{.spec.template.spec.containers[0].securityContext.privileged}`

// TestKubernetesRules: a privileged container on a real cluster. The vendor's policy denies
// it; without that policy the customer's guardrails do, also when somebody writes into the
// control plane's database that the customer agreed. Then the customer agrees by key, for
// the container and for a Terraform module that replaces data, and by rules that expire and
// freeze.
func TestKubernetesRules(t *testing.T) {
	t.Parallel()
	ada := startSSHAgent(t)
	s := startOnCluster(t)
	app := shopFolder(t)
	r := &ruled{shop: s.shop(app), ada: ada}
	db := s.database()
	guardrails := filepath.Join(r.runnerDir(), "guardrails")
	// `berth up` has them warn only, since vendor and customer are one there. Not here.
	if err := os.Remove(filepath.Join(guardrails, "answers.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(guardrails, "key-is-data.rego"), []byte(keyIsData), 0o600); err != nil {
		t.Fatal(err)
	}
	r.agreeing(consent.ModeVendor)
	deployed := func() {
		t.Helper()
		if got := r.field("deployment/web", privileged); got == "true" {
			t.Fatal("the privileged container runs")
		}
	}

	// The vendor's policy, at plan.
	chart := filepath.Join(app, "src", "chart", "templates", "deployment.yaml")
	edit(t, chart, `          securityContext: {{- include "web.securityContext" . | nindent 12 }}`, `          securityContext: {privileged: true}`)
	r.addPolicy("no-privileged", "helm_chart", noPrivileged)
	s.sync("shop", app)
	w := r.settled(r.deploy(true, "web").ID)
	if text := r.explain(w); w.State != "failed" || !strings.Contains(text, "no-privileged") || !strings.Contains(text, "no privileged containers") {
		t.Fatalf("the vendor's policy: %s", text)
	}
	deployed()

	// The customer's guardrail denies it where the vendor has no policy.
	for _, ext := range []string{".toml", ".yaml"} {
		if err := os.Remove(filepath.Join(app, "policies", "no-privileged"+ext)); err != nil {
			t.Fatal(err)
		}
	}
	s.sync("shop", app)
	r.own("guardrails", "set", "privileged-container", "--answer", "deny", "--reason", "never")
	w = r.settled(r.deploy(true, "web").ID)
	if text := r.explain(w); w.State != "failed" || !strings.Contains(text, "guardrails deny this change") {
		t.Fatalf("the customer's guardrail: %s", text)
	}
	deployed()

	// Where it asks, what the control plane believes of the answer counts for nothing.
	r.own("guardrails", "set", "privileged-container", "--answer", "ask", "--reason", "a person decides")
	w = r.deploy(true, "web")
	change, _ := r.asked(w.ID, "privileged")
	if _, err := db.Exec(t.Context(), `update berth.consents set state = 'given', answered_by = '{ada}' where change_id = $1`, change); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `select berth.wake_workflow($1)`, w.ID); err != nil {
		t.Fatal(err)
	}
	w = r.settled(w.ID)
	if text := r.explain(w); w.State != "failed" || !strings.Contains(text, "not agreed") {
		t.Fatalf("a consent that is only in the database: %s", text)
	}
	deployed()

	// The customer's key.
	w = r.deploy(true, "web")
	change, effect := r.asked(w.ID, "privileged")
	r.own("approve", change, "--ssh-key", ada.public, "--reason", "ticket 4711", "--yes", effect)
	r.settles(w.ID, "succeeded")
	if got := r.field("deployment/web", privileged); got != "true" {
		t.Errorf("with consent the container is not privileged: %q", got)
	}
	r.signedByBoth(effect)

	// A Terraform module that replaces data.
	edit(t, filepath.Join(app, "src", "catalogue", "main.tf"), "  lifecycle {", "  triggers_replace = \"again\"\n\n  lifecycle {")
	s.sync("shop", app)
	w = r.deploy(true, "catalogue")
	change, effect = r.asked(w.ID, "would be replaced")
	r.own("approve", change, "--ssh-key", ada.public, "--reason", "the visitors log in once more", "--yes", effect)
	// The pods still have the key of before, so the shop's own check fails; this is about the key.
	if w := r.finished(w.ID, rolloutTimeout); step(w, "component/catalogue").Change.State != "applied" {
		t.Fatalf("with consent: %s", r.explain(w))
	}
	r.signedByBoth(effect)

	// Standing rules: they agree until they expire, and not in a freeze.
	r.agreeing(consent.ModeRules)
	line := func(limit string) {
		t.Helper()
		edit(t, filepath.Join(app, "components", "web.toml"), `"64Mi"`, `"`+limit+`"`)
		s.sync("shop", app)
		edit(t, filepath.Join(app, "components", "web.toml"), `"`+limit+`"`, `"64Mi"`)
	}
	expires := time.Now().Add(90 * time.Second)
	r.rules(1, expires, "")
	line("72Mi")
	r.settles(r.deploy(true, "web").ID, "succeeded")
	if time.Now().After(expires) {
		t.Fatal("this machine took longer for a deploy than the rules last: nothing is shown of their end")
	}
	time.Sleep(time.Until(expires.Add(time.Second)))
	line("80Mi")
	w = r.deploy(true, "web")
	r.asked(w.ID, "expired")
	s.must("workflows", "cancel", w.ID)
	r.settled(w.ID)

	today := time.Now().UTC()
	r.rules(2, today.Add(time.Hour), fmt.Sprintf("[[freeze]]\nfrom = %q\nuntil = %q\nreason = \"inventory\"\n", today.Add(-24*time.Hour).Format(time.DateOnly), today.Add(48*time.Hour).Format(time.DateOnly)))
	w = r.deploy(true, "web")
	r.asked(w.ID, "inventory")
	if why := s.must("why", r.name); !strings.Contains(why, today.Add(48*time.Hour).Format(time.DateOnly)) && !strings.Contains(why, today.Add(72*time.Hour).Format(time.DateOnly)) {
		t.Errorf("it does not say until when: %s", why)
	}
	s.must("workflows", "cancel", w.ID)
	r.settled(w.ID)
	r.own("guardrails", "allow-deprovision", "--for", "1h", "--reason", "the test is over")
}

// signedByBoth finds the order and the customer's signature of an effect in the chain, and
// verifies them offline.
func (r *ruled) signedByBoth(effect string) {
	r.t.Helper()
	intent := r.consented(effect)
	text, err := os.ReadFile(r.ada.public)
	if err != nil {
		r.t.Fatal(err)
	}
	key, err := consent.ParseKey(string(text))
	if err != nil {
		r.t.Fatal(err)
	}
	if intent.Capsule == "" || len(intent.Consent.Signed) != 1 {
		r.t.Fatalf("the intent does not name both: %+v", intent)
	}
	if _, payload, err := consent.Signers([]consent.Key{key}, consent.ForStatement, intent.Consent.Signed[0]); err != nil || !strings.Contains(string(payload), effect) {
		r.t.Errorf("the consent in the chain: %s, %v", payload, err)
	}
	if out, err := exec.CommandContext(r.t.Context(), filepath.Join(r.bin, "berth-verify"), "chain", filepath.Join(r.runnerDir(), "chain.jsonl")).CombinedOutput(); err != nil {
		r.t.Errorf("berth-verify: %v\n%s", err, out)
	}
}
