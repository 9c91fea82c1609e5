package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	rolloutTimeout  = 3 * time.Minute // images pulled, pods ready, on a busy machine
	teardownTimeout = 3 * time.Minute // namespaces go slowly
)

// shop is an install of examples/shop on a real cluster.
type shop struct {
	*install
	namespace string
}

// shopImage builds the image of the shop and pushes it to the development
// registry, once for all tests.
var shopImage = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), cliTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join("..", "..", "dev", "scripts", "shop-image.sh")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("shop-image.sh: %w: %s", err, out)
	}
	return nil
})

// startOnCluster is start with local installs on the cluster of KUBECONFIG, and
// with the image of the shop where its app folder says.
func startOnCluster(t *testing.T, extraEnv ...string) *system {
	t.Helper()
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	if err := shopImage(); err != nil {
		t.Fatal(err)
	}
	return start(t, append(extraEnv, "KUBECONFIG="+kubeconfig)...)
}

// shopFolder is a copy of examples/shop.
func shopFolder(t *testing.T) string {
	t.Helper()
	return folder(t, filepath.Join("..", "..", "examples", "shop"))
}

// shop makes an install of an app folder and brings it up.
func (s *system) shop(app string) *shop {
	s.t.Helper()
	if s.deployment != nil {
		s.imageFromDeployment(app)
	}
	s.sync("shop", app)
	in := &install{system: s, name: "t" + suffix(), app: app}
	k := &shop{install: in, namespace: "shop-" + in.name}
	s.t.Cleanup(func() {
		if _, err := k.command("kubectl", "delete", "namespace", k.namespace, "--ignore-not-found", "--wait=false"); err != nil {
			s.t.Error(err)
		}
	})
	var made ctlapi.Install
	s.post("/installs", map[string]any{
		"name": in.name, "app": "shop", "customer": in.name, "create_customer": true, "stack": s.stackKind(),
		"provision": true, "approve_all": true,
	}, &made)
	if s.deployment != nil {
		in.namespace = k.namespace
		s.enrolOnCluster(in, "--engines", "process") // TestKubernetesJobs has the other ones
		return k
	}
	in.id = made.ID
	if w := in.finished(*made.WorkflowID, rolloutTimeout); w.State != "succeeded" {
		s.t.Fatalf("provision of %s: %s: %s", in.name, w.State, in.explain(w))
	}
	var stack ctlapi.Stack
	s.get("/installs/"+in.name+"/stack", &stack)
	in.runner = stack.Runner.ID
	return k
}

// suffix tells names of this test from those of others in the same cluster.
func suffix() string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	return hex.EncodeToString(random)
}

// on is the same shop, reporting to a sub-test.
func (k *shop) on(t *testing.T) *shop { return &shop{install: k.in(t), namespace: k.namespace} }

// command runs a tool of the customer's, who has the kubeconfig too.
func (k *shop) command(name string, args ...string) (string, error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cliTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errOut bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = k.env, &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, errOut.String())
	}
	return out.String(), nil
}

// kubectl works in the shop's namespace.
func (k *shop) kubectl(args ...string) string {
	k.t.Helper()
	out, err := k.command("kubectl", append([]string{"--namespace", k.namespace}, args...)...)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// helm decodes what the Helm CLI says of the shop's namespace.
func (k *shop) helm(out any, args ...string) {
	k.t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		helm = "helm"
	}
	said, err := k.command(helm, append([]string{"--namespace", k.namespace, "--output", "json"}, args...)...)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(said), out); err != nil {
		k.t.Fatalf("helm %v: %v: %s", args, err, said)
	}
}

// field reads one field of a live object.
func (k *shop) field(object, jsonpath string) string {
	k.t.Helper()
	return k.kubectl("get", object, "--output", "jsonpath="+jsonpath)
}

const memoryLimit = `{.spec.template.spec.containers[0].resources.limits.memory}`

// answers asks the pods over HTTP.
func (k *shop) answers(path string) (string, error) {
	return k.command("kubectl", "get", "--raw", "/api/v1/namespaces/"+k.namespace+"/services/http:web:80/proxy"+path)
}

// objects says of each object of the shop that lasts which one it is and in
// which version. Who owns others writes into their status, so of workloads it is
// the version of what is wanted.
func (k *shop) objects() []string {
	k.t.Helper()
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct {
				Name, UID, ResourceVersion string
				Generation                 int64
			}
		}
	}
	said := k.kubectl("get", "deployments,services,configmaps,secrets,poddisruptionbudgets,jobs", "--output", "json")
	if err := json.Unmarshal([]byte(said), &list); err != nil {
		k.t.Fatal(err)
	}
	var all []string
	for _, item := range list.Items {
		if item.Kind == "ConfigMap" && strings.HasPrefix(item.Metadata.Name, "berth-") {
			continue // an inventory, in which each attempt leaves its number
		}
		version := item.Metadata.ResourceVersion
		if item.Metadata.Generation > 0 {
			version = fmt.Sprint("generation ", item.Metadata.Generation)
		}
		all = append(all, fmt.Sprintf("%s/%s %s %s", item.Kind, item.Metadata.Name, item.Metadata.UID, version))
	}
	slices.Sort(all)
	return all
}

// traces lists everything in the cluster that mentions the shop's namespace.
func (k *shop) traces() []string {
	k.t.Helper()
	kinds, err := k.command("kubectl", "api-resources", "--verbs=list", "--output", "name")
	if err != nil {
		k.t.Fatal(err)
	}
	said, err := k.command("kubectl", "get", strings.Join(strings.Fields(kinds), ","), "--all-namespaces", "--output", "json")
	if err != nil {
		k.t.Fatal(err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(said), &list); err != nil {
		k.t.Fatal(err)
	}
	var found []string
	for _, raw := range list.Items {
		if !bytes.Contains(raw, []byte(`"`+k.namespace+`"`)) {
			continue
		}
		var o struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			k.t.Fatal(err)
		}
		// What happened is not what is there; it expires by itself.
		if o.Kind != "Event" {
			found = append(found, o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name)
		}
	}
	return found
}

// limit gives the pods of the shop another memory limit in the app folder.
func (k *shop) limit(memory string) {
	k.t.Helper()
	file := filepath.Join(k.app, "components", "web.toml")
	raw, err := os.ReadFile(file)
	if err != nil {
		k.t.Fatal(err)
	}
	const key = `"resources.limits.memory" = `
	at := bytes.Index(raw, []byte(key))
	if at < 0 {
		k.t.Fatalf("%s has no %s", file, key)
	}
	end := at + bytes.IndexByte(raw[at:], '\n')
	changed := string(raw[:at]) + key + `"` + memory + `"` + string(raw[end:])
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		k.t.Fatal(err)
	}
	k.sync("shop", k.app)
}

// deployed brings the install to the newest release and waits for its end.
func (k *shop) deployed(components ...string) ctlapi.Workflow {
	k.t.Helper()
	w := k.finished(k.deploy(true, components...).ID, rolloutTimeout)
	if w.State != "succeeded" {
		k.t.Fatalf("deploy of %v: %s: %s", components, w.State, k.explain(w))
	}
	return w
}

// approve approves a change and all that its workflow proposes after it, such as
// the action that follows a deploy.
func (k *shop) approve(c ctlapi.Change) {
	k.t.Helper()
	k.decide(c, "approve")
	k.eventually(rolloutTimeout, "workflow "+c.WorkflowID+" succeeds", func() error {
		w := k.workflow(c.WorkflowID)
		switch w.State {
		case "succeeded":
			return nil
		case "failed", "cancelled":
			k.t.Fatalf("after the approval: %s", k.explain(w))
		}
		for _, s := range w.Steps {
			if s.Change != nil && s.Change.State == "proposed" {
				var next ctlapi.Change
				k.get("/changes/"+s.Change.ID, &next)
				k.decide(next, "approve")
			}
		}
		return errors.New(k.explain(w))
	})
}

// fields lists the fields that a change writes: "OBJECT PATH: BEFORE → AFTER".
// Each change of a chart also has its hooks, which are shown whole, and its
// release: these are left out.
func fields(c ctlapi.Change) []string {
	var all []string
	for _, o := range c.Plan.Objects {
		if o.Action == "run" || len(o.Fields) == 0 && o.Action == "upgrade" {
			continue
		}
		if len(o.Fields) == 0 {
			all = append(all, o.Address+" "+o.Action)
		}
		for _, f := range o.Fields {
			all = append(all, fmt.Sprintf("%s %s: %s → %s", o.Address, f.Path, f.Before, f.After))
		}
	}
	return all
}
