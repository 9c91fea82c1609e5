package e2e_test

import (
	"os"
	"testing"
)

// TestKubernetesDashboard goes through the life of examples/shop on a real cluster in the
// dashboard: web/journeys/shop.
func TestKubernetesDashboard(t *testing.T) {
	t.Parallel()
	if os.Getenv("BERTH_WEB_FULL") == "" {
		t.Skip("long: make web-full runs it")
	}
	chromium := chromiumOf(t)
	s := startOnCluster(t)
	in := &install{system: s, name: "t" + suffix()}
	k := &shop{install: in, namespace: "shop-" + in.name}
	t.Cleanup(func() {
		if _, err := k.command("kubectl", "delete", "namespace", k.namespace, "--ignore-not-found", "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	s.journeys("journeys/shop", "BERTH_CHROMIUM="+chromium, "BERTH_APP="+shopFolder(t), "BERTH_INSTALL="+in.name)
}
