package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestKubernetes is the way of examples/shop on a real cluster: to pods that
// answer, through changes that are denied, approved and overtaken, to nothing.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	s := startOnCluster(t)
	k := s.shop(shopFolder(t))

	t.Run("real pods answer, with what they were given", func(t *testing.T) {
		k := k.on(t)
		answer, err := k.answers("/healthz")
		if err != nil {
			t.Fatal(err)
		}
		fingerprint := fmt.Sprint(k.output("catalogue")["session_fingerprint"])
		if want := "ok\ntitle: Harbour Shop\nsession: " + fingerprint + "\n"; !strings.HasPrefix(answer, want) {
			t.Errorf("the shop answers\n%swant\n%s", answer, want)
		}
		// Each pod was seeded after the deploy.
		products, err := k.answers("/products")
		if err != nil || !strings.Contains(products, "Ship in a bottle") {
			t.Errorf("the offers of the season are not sold: %s (%v)", products, err)
		}
		k.must("actions", "run", k.name, "shop_answers", "--watch")
		k.eventually(goOnTimeout, "the install is healthy", func() error {
			var h ctlapi.Health
			if err := k.call(http.MethodGet, "/installs/"+k.name+"/health", nil, &h); err != nil || h.Verdict != "healthy" {
				return fmt.Errorf("%s %v", h.Verdict, err) //nolint:errorlint // there may be none
			}
			return nil
		})
	})

	t.Run("the customer's own tools show what Berth shows", func(t *testing.T) { k.on(t).customerSees() })

	t.Run("a deploy of the same changes nothing", func(t *testing.T) {
		k := k.on(t)
		before := k.objects()
		w := k.deployed("web", "extras")
		for _, name := range []string{"component/web", "component/extras"} {
			if c := step(w, name).Change; c == nil || c.State != "no_change" {
				t.Errorf("%s: %s", name, k.explain(w))
			}
		}
		if diff := cmp.Diff(before, k.objects()); diff != "" {
			t.Errorf("objects (-before +after):\n%s", diff)
		}
	})

	t.Run("one chart value makes a release without a build and a change of just that field", func(t *testing.T) {
		k := k.on(t)
		before, builds := k.objects(), k.builds()
		k.limit("96Mi")
		if got := k.builds(); got != builds {
			t.Errorf("%d builds after the sync, %d before", got, builds)
		}
		w := k.deploy(false, "web")
		c := k.proposed(w.ID, "component/web")
		if got := fields(c); len(got) != 1 || !strings.Contains(got[0], "resources.limits.memory") ||
			!strings.Contains(got[0], "64Mi") || !strings.Contains(got[0], "96Mi") {
			t.Errorf("the change shows other fields than the memory limit: %q", got)
		}
		k.decide(c, "deny")
		if got := k.finished(w.ID, time.Minute); got.State != "failed" {
			t.Errorf("workflow is %s after the denial", got.State)
		}
		if diff := cmp.Diff(before, k.objects()); diff != "" {
			t.Errorf("the denial left another cluster (-before +after):\n%s", diff)
		}

		w = k.deploy(false, "web")
		k.approve(k.proposed(w.ID, "component/web"))
		if got := k.field("deployment/web", memoryLimit); got != "96Mi" {
			t.Errorf("the live limit is %s", got)
		}
		if updated, wanted := k.field("deployment/web", "{.status.updatedReplicas}"), k.field("deployment/web", "{.spec.replicas}"); updated != wanted {
			t.Errorf("%s of %s pods are rolled out", updated, wanted)
		}
	})

	t.Run("a field that a person edits after the approval is named, and not overwritten", func(t *testing.T) {
		k := k.on(t)
		k.limit("128Mi")
		w := k.deploy(false, "web")
		c := k.proposed(w.ID, "component/web")
		k.kubectl("set", "resources", "deployment/web", "--limits", "memory=80Mi")
		before := k.objects()
		k.decide(c, "approve")
		var stale ctlapi.Change
		k.eventually(time.Minute, "the change is stale", func() error {
			if err := k.call(http.MethodGet, "/changes/"+c.ID, nil, &stale); err != nil {
				return err
			}
			if stale.State != "stale" {
				return fmt.Errorf("it is %s: %s", stale.State, k.explain(k.workflow(w.ID)))
			}
			return nil
		})
		if !slices.ContainsFunc(stale.Differs, func(d ctlapi.Difference) bool {
			return strings.Contains(d.Field, "web") && strings.Contains(d.Field, "resources.limits.memory") && strings.Contains(d.Got, "80Mi")
		}) {
			t.Errorf("the field is not named: %+v", stale.Differs)
		}
		// It is planned again, shows what it would take back, and waits.
		c = k.proposed(w.ID, "component/web")
		if c.ID == stale.ID || len(c.Decisions) != 0 {
			t.Errorf("the edit was decided already: %+v", c.Decisions)
		}
		if got := fields(c); len(got) != 1 || !strings.Contains(got[0], "80Mi") || !strings.Contains(got[0], "128Mi") {
			t.Errorf("the new plan shows %q", got)
		}
		if diff := cmp.Diff(before, k.objects()); diff != "" {
			t.Errorf("something was written (-before +after):\n%s", diff)
		}
		k.approve(c)
	})

	t.Run("an object that left the manifest is named in the plan and pruned", func(t *testing.T) {
		k := k.on(t)
		file := filepath.Join(k.app, "components", "extras.yaml")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kept, _, found := strings.Cut(string(raw), "---\n")
		if !found {
			t.Fatal("the manifest has one object only")
		}
		if err := os.WriteFile(file, []byte(kept), 0o644); err != nil {
			t.Fatal(err)
		}
		k.sync("shop", k.app)
		w := k.deploy(false, "extras")
		c := k.proposed(w.ID, "component/extras")
		if c.Plan.Delete != 1 || len(c.Plan.Objects) != 1 || c.Plan.Objects[0].Action != "delete" || !strings.Contains(c.Plan.Objects[0].Address, "PodDisruptionBudget") {
			t.Errorf("the plan does not name what it prunes: %+v", c.Plan.Objects)
		}
		k.kubectl("get", "poddisruptionbudget/web")
		k.approve(c)
		if left := k.kubectl("get", "poddisruptionbudgets", "--output", "name"); left != "" {
			t.Errorf("not pruned: %s", left)
		}
		k.kubectl("get", "configmap/opening-hours")
	})

	t.Run("deprovision removes everything that was made", func(t *testing.T) {
		k := k.on(t)
		if len(k.traces()) < 10 {
			t.Errorf("only %v is found of the live install", k.traces())
		}
		var w ctlapi.Workflow
		k.post("/installs/"+k.name+"/workflows", map[string]any{"kind": "deprovision", "approve_all": true, "confirm": k.name}, &w)
		if got := k.finished(w.ID, teardownTimeout); got.State != "succeeded" {
			t.Fatalf("deprovision: %s", k.explain(got))
		}
		left := k.traces()
		if s.deployment != nil { // the customer applied these
			left = slices.DeleteFunc(left, func(object string) bool {
				kind, _, _ := strings.Cut(object, " ")
				return slices.Contains([]string{"Namespace", "Role", "RoleBinding", "ConfigMap", "ServiceAccount"}, kind)
			})
		}
		if len(left) > 0 {
			t.Errorf("left in the cluster: %v", left)
		}
	})
}

// customerSees compares what the Helm CLI and kubectl show with the outputs of
// the components.
func (k *shop) customerSees() {
	k.t.Helper()
	var web struct {
		Release struct {
			Name       string
			Namespace  string
			Revision   int
			AppVersion string `json:"app_version"`
		}
		Services []struct {
			Name      string
			ClusterIP string `json:"cluster_ip"`
		}
		Resources []struct{ Kind, Name string }
	}
	k.outputs("web", &web)

	var releases []struct {
		Name, Namespace, Revision, Status, Chart string
		AppVersion                               string `json:"app_version"`
	}
	k.helm(&releases, "list", "--all")
	if len(releases) != 1 {
		k.t.Fatalf("helm list shows %+v", releases)
	}
	r := releases[0]
	if r.Status != "deployed" || r.Chart != "web-1.0.0" || r.Name != web.Release.Name || r.Namespace != web.Release.Namespace ||
		r.Revision != fmt.Sprint(web.Release.Revision) || r.AppVersion != web.Release.AppVersion {
		k.t.Errorf("helm list shows %+v, Berth %+v", r, web.Release)
	}
	var history []struct {
		Revision int
		Status   string
	}
	k.helm(&history, "history", "web")
	if len(history) != web.Release.Revision || history[len(history)-1].Status != "deployed" {
		k.t.Errorf("helm history shows %+v", history)
	}

	for _, res := range web.Resources {
		k.kubectl("get", res.Kind+"/"+res.Name)
	}
	if len(web.Resources) != 4 {
		k.t.Errorf("the outputs list %+v, want Deployment, Service, ConfigMap and Secret", web.Resources)
	}
	if len(web.Services) != 1 || web.Services[0].ClusterIP != k.field("service/web", "{.spec.clusterIP}") {
		k.t.Errorf("the services are %+v", web.Services)
	}
	var image struct{ Image struct{ Ref, Digest string } }
	k.outputs("web_image", &image)
	if got := k.field("deployment/web", "{.spec.template.spec.containers[0].image}"); got != image.Image.Ref {
		k.t.Errorf("the pods run %s, Berth says %s", got, image.Image.Ref)
	}
}

// outputs decodes the outputs of a component.
func (k *shop) outputs(component string, out any) {
	k.t.Helper()
	raw, err := json.Marshal(k.output(component))
	if err != nil {
		k.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		k.t.Fatalf("outputs of %s: %v: %s", component, err, raw)
	}
}
