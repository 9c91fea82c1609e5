package e2e_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestKubernetesSecrets copies the customer's secrets into a cluster: with a deploy, again
// on demand after a rotation, and away when they are no longer declared. An app that names
// a Secret of the customer's is refused. No value is anywhere but with the customer.
func TestKubernetesSecrets(t *testing.T) {
	t.Parallel()
	home := os.Getenv("KUBECONFIG")
	if home == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	s := start(t, "KUBECONFIG="+home)
	in := s.probe("acme")
	db := s.database()
	k := &shop{install: in, namespace: "secrets-" + suffix()}
	t.Cleanup(func() {
		for _, namespace := range []string{k.namespace, in.id} {
			if _, err := k.command("kubectl", "delete", "namespace", namespace, "--ignore-not-found", "--wait=false"); err != nil {
				t.Error(err)
			}
		}
	})
	k.copies("token", "made")
	k.around()
	s.sync("probe", in.app)
	in.set("token", customerText)
	s.must("apps", "variables", "set", "probe", "token="+plainText, "--plain")

	w := in.finished(in.deploy(true, "one").ID, time.Minute)
	if w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	if got := k.secretKey("token", "key"); got != customerText {
		t.Fatalf("the copy has %q", got)
	}
	if got := k.secretKey("made", "key"); len(got) != 63 {
		t.Errorf("the copy of the made secret has %d bytes", len(got))
	}
	if c := step(w, "secrets-sync").Change; c == nil || c.Kind != "secret_sync" || c.State != "applied" {
		t.Errorf("the change is %+v", c)
	}

	k.fromKubernetes("token", rotatedText)
	in.eventually(goOnTimeout, "the copy is behind", func() error {
		token := in.secret("token")
		if len(token.Copies) == 1 && token.Copies[0].Behind && token.Copies[0].Version == 1 && token.Copies[0].Namespace == k.namespace {
			return nil
		}
		return fmt.Errorf("%+v", token)
	})
	if why := s.must("why", "acme"); !strings.Contains(why, "its copy in the cluster ("+k.namespace+"/token, key key) still has version 1") || !strings.Contains(why, "berth installs sync-secrets acme") {
		t.Errorf("why does not say what is behind:\n%s", why)
	}
	out := s.must("installs", "sync-secrets", "acme", "--auto-approve", "--watch")
	if got := k.secretKey("token", "key"); got != rotatedText {
		t.Fatalf("after the sync the copy has %q:\n%s", got, out)
	}
	w = in.workflow(s.newestWorkflow("acme"))
	for _, name := range []string{"pre-secrets-sync/around", "secrets-sync", "post-secrets-sync/around"} {
		if got := step(w, name).State; got != "succeeded" {
			t.Errorf("step %s is %s", name, got)
		}
	}
	var change ctlapi.Change
	in.get("/changes/"+step(w, "secrets-sync").Change.ID, &change)
	if got := fmt.Sprint(fields(change)); !strings.Contains(got, "token version 1 (hmac-sha256:") || !strings.Contains(got, "token version 2 (hmac-sha256:") {
		t.Errorf("the change shows %s", got)
	}

	// The vendor's app names a Secret of the customer's.
	k.kubectl("create", "secret", "generic", "theirs", "--from-literal=key=of the customer")
	k.copies("theirs", "made")
	s.sync("probe", in.app)
	in.set("theirs", "value of a secret that the app asks for")
	w = in.finished(in.deploy(true, "one").ID, time.Minute)
	if w.State != "failed" || !strings.Contains(in.explain(w), "theirs is there already and it was not made by Berth") {
		t.Errorf("the deploy: %s: %s", w.State, in.explain(w))
	}
	if got := k.secretKey("theirs", "key"); got != "of the customer" {
		t.Errorf("the customer's Secret has %q", got)
	}
	if got := k.secretKey("token", "key"); got != rotatedText {
		t.Errorf("a refused sync left %q", got)
	}

	// What is no longer declared is shown, and goes.
	k.copies("made")
	s.sync("probe", in.app)
	w = in.deploy(false, "one")
	in.decide(in.proposed(w.ID, "pre-secrets-sync/around"), "approve")
	if removal := in.proposed(w.ID, "secrets-sync"); removal.Plan == nil || removal.Plan.Delete != 1 {
		t.Errorf("the change does not show a removal: %+v", removal.Plan)
	} else {
		k.approve(removal)
	}
	in.eventually(time.Minute, "the copy is gone", func() error {
		_, err := k.command("kubectl", "--namespace", k.namespace, "get", "secret", "token")
		if err == nil {
			return fmt.Errorf("%s", in.explain(in.workflow(w.ID)))
		}
		return nil
	})

	places := in.searchAll(t, db)
	for _, name := range slices.Sorted(maps.Keys(places)) {
		for _, text := range []string{customerText, rotatedText} {
			for _, where := range places[name].found[text] {
				t.Errorf("%s is in the %s: %s", text[:8], name, where)
			}
		}
	}

	var gone ctlapi.Workflow
	if err := in.call(http.MethodPost, "/installs/acme/workflows", map[string]any{"kind": "deprovision", "confirm": "acme", "approve_all": true}, &gone); err != nil {
		t.Fatal(err)
	}
	if gone = in.finished(gone.ID, teardownTimeout); gone.State != "succeeded" {
		t.Fatalf("deprovision: %s", in.explain(gone))
	}
	if out, err := k.command("kubectl", "get", "secrets", "--all-namespaces", "-l", "berth.dev/secret-copies", "-o", "jsonpath={.items[*].metadata.annotations.berth\\.dev/install}"); err != nil || strings.Contains(out, in.id) {
		t.Errorf("copies are left: %s %v", out, err)
	}
}

// fromKubernetes sets a secret from a Secret of the customer's, with an account that may get
// that one and nothing else; another one is refused.
func (k *shop) fromKubernetes(name, value string) {
	k.t.Helper()
	k.kubectl("create", "secret", "generic", "vault", "--from-literal=current="+value)
	k.kubectl("create", "secret", "generic", "vault-of-others", "--from-literal=current=somebody else's value")
	k.kubectl("create", "serviceaccount", "reader")
	k.kubectl("create", "role", "reader", "--verb=get", "--resource=secrets", "--resource-name=vault")
	k.kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount="+k.namespace+":reader")
	token := strings.TrimSpace(k.kubectl("create", "token", "reader"))
	file := filepath.Join(k.t.TempDir(), "reader.yaml")
	config := k.kubectl("config", "view", "--minify", "--flatten", "--output", "jsonpath={.clusters[0].cluster}")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":%s}],"users":[{"name":"u","user":{"token":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`, config, token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	set := func(from string) (string, error) {
		return k.command(filepath.Join(k.bin, "berth-runner"), "--data", k.runnerDir(), "secrets", "set", name, "--from-kubernetes", k.namespace+"/"+from, "--kubeconfig", file)
	}
	if out, err := set("vault-of-others:current"); err == nil || !strings.Contains(err.Error(), "needs the right to get Secret vault-of-others") {
		k.t.Errorf("a Secret without the right to it: %s %v", out, err)
	}
	if out, err := set("vault:earlier"); err == nil || !strings.Contains(err.Error(), "it has: current") {
		k.t.Errorf("a key that is not there: %s %v", out, err)
	}
	if out, err := set("vault:current"); err != nil || strings.Contains(out, value) {
		k.t.Errorf("set from a Secret: %s %v", out, err)
	}
}

// copies writes secrets.toml: each secret has a copy of its name, with the key "key".
func (k *shop) copies(names ...string) {
	k.t.Helper()
	var b strings.Builder
	for _, name := range names {
		how := "required = true"
		if name == "made" {
			how = "auto_generate = true"
		}
		fmt.Fprintf(&b, "[[secret]]\nname = %q\ndescription = \"d\"\n%s\n[[secret.kubernetes_sync_targets]]\nnamespaces = [%q]\nname = %q\nkey = \"key\"\n", name, how, k.namespace, name)
	}
	if err := os.WriteFile(filepath.Join(k.app, "secrets.toml"), []byte(b.String()), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

// around ties an action to both points of a sync.
func (k *shop) around() {
	k.t.Helper()
	text := "# action\nname = \"around\"\n[[triggers]]\ntype = \"pre-secrets-sync\"\n[[triggers]]\ntype = \"post-secrets-sync\"\n[[steps]]\nname = \"say\"\ninline_contents = \"echo around\"\n"
	if err := os.WriteFile(filepath.Join(k.app, "actions", "around.toml"), []byte(text), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

// secretKey is the value of a key of a Secret, as the customer reads it.
func (k *shop) secretKey(name, key string) string {
	k.t.Helper()
	value, err := base64.StdEncoding.DecodeString(k.kubectl("get", "secret", name, "--output", "jsonpath={.data."+key+"}"))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(value)
}
