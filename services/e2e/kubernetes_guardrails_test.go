package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKubernetesGuardrails: a chart that turns to a privileged pod is denied by the customer's
// runner, although the vendor approved everything ahead, and the cluster stays as it was.
func TestKubernetesGuardrails(t *testing.T) {
	t.Parallel()
	s := startOnCluster(t)
	if s.deployment != nil {
		t.Skip("the customer's command line works on the runner's data directory, which is in a pod there")
	}
	k := s.shop(shopFolder(t))
	folder := filepath.Join(k.runnerDir(), "guardrails")
	if err := os.Remove(filepath.Join(folder, "answers.json")); err != nil {
		t.Fatal(err)
	}
	// What ships asks; this customer does not want to be asked.
	if out, err := k.install.customer("guardrails", "set", "privileged-container", "--answer", "deny", "--reason", "no pod of others is root on our nodes"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before := k.objects()

	edit(t, filepath.Join(k.app, "src", "chart", "templates", "deployment.yaml"),
		`securityContext: {{- include "web.securityContext" . | nindent 12 }}`, "securityContext: {privileged: true}")
	k.sync("shop", k.app)
	w := k.settled(k.deploy(true, "web").ID)
	if text := k.explain(w); w.State == "succeeded" || !strings.Contains(text, "guardrails deny this change") || !strings.Contains(text, "privileged-container") {
		t.Errorf("the deploy of a privileged pod: %s", text)
	}
	if diff := cmp.Diff(before, k.objects()); diff != "" {
		t.Errorf("objects (-before +after):\n%s", diff)
	}
}
