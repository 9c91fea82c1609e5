package e2e_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubernetesWithoutTheVendor takes the vendor's registry and the registry of
// the org away once the release is there. The install has what it needs.
func TestKubernetesWithoutTheVendor(t *testing.T) {
	t.Parallel()
	s := startOnCluster(t)
	app := shopFolder(t)
	// Every start of a pod asks the registry, also when the node has the image.
	edit(t, filepath.Join(app, "src", "chart", "templates", "deployment.yaml"),
		"          env:\n", "          imagePullPolicy: Always\n          env:\n")
	vendor := vendorRegistry(t, app)
	k := s.shop(app)
	k.limit("96Mi")

	vendor.Close()
	k.stopParts("builder") // it serves the registry of the org
	if image := k.field("deployment/web", "{.spec.template.spec.containers[0].image}"); strings.HasPrefix(image, vendor.Listener.Addr().String()) {
		t.Fatalf("the pods run %s, which is the vendor's", image)
	}
	k.deployed("web")
	if got := k.field("deployment/web", memoryLimit); got != "96Mi" {
		t.Errorf("after the deploy the limit is %s", got)
	}

	before := k.kubectl("get", "pods", "--output", "name")
	k.kubectl("delete", "pods", "--all", "--wait=false")
	k.eventually(rolloutTimeout, "new pods run", func() error {
		now := k.kubectl("get", "pods", "--output", "name")
		for _, old := range strings.Fields(before) {
			if strings.Contains(now, old) {
				return fmt.Errorf("%s is still there", old)
			}
		}
		if ready := k.field("deployment/web", "{.status.readyReplicas}"); ready != k.field("deployment/web", "{.spec.replicas}") {
			return errors.New(k.kubectl("get", "pods"))
		}
		return nil
	})
	if _, err := k.answers("/healthz"); err != nil {
		t.Error(err)
	}
	for _, pod := range strings.Fields(k.kubectl("get", "pods", "--output", "jsonpath={.items[*].metadata.name}")) {
		pulled := k.kubectl("get", "events", "--field-selector", "reason=Pulled,involvedObject.name="+pod, "--output", "jsonpath={.items[*].message}")
		if !strings.Contains(pulled, `Successfully pulled image "127.0.0.1:`) {
			t.Errorf("pod %s began without a pull: %s", pod, pulled)
		}
	}

	if _, code := k.berth("rollback", k.name, "--to", "1", "--auto-approve"); code != 0 {
		t.Fatalf("rollback exits %d", code)
	}
	if got := k.field("deployment/web", memoryLimit); got != "64Mi" {
		t.Errorf("after the rollback the limit is %s", got)
	}
}

// vendorRegistry stands in front of the registry in which the vendor keeps
// images, so that it can be taken away. The app folder gets its address.
func vendorRegistry(t *testing.T, app string) *httptest.Server {
	t.Helper()
	const development = "127.0.0.1:16452"
	behind := os.Getenv("BERTH_DEV_REGISTRY")
	if behind == "" {
		behind = development
	}
	server := httptest.NewServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind}))
	t.Cleanup(server.Close)
	edit(t, filepath.Join(app, "components", "web_image.toml"), development, server.Listener.Addr().String())
	return server
}
