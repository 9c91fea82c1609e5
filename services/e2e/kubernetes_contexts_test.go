package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestKubernetesContexts is an install in two clusters: the sandbox's own, and a
// second one that a component gives access to. One chart comes from a private
// repository over https, one from a registry.
func TestKubernetesContexts(t *testing.T) {
	t.Parallel()
	home := os.Getenv("KUBECONFIG")
	if home == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	west := newSecondCluster(t)
	charts := newChartRepository(t)
	s := start(t, "KUBECONFIG="+home, "SSL_CERT_FILE="+charts.authority, "BERTH_SOURCE_CREDENTIALS="+charts.credentials)

	app := folder(t, filepath.Join("testdata", "contexts"))
	edit(t, filepath.Join(app, "components", "notes.toml"), "https://charts.example.com/private", charts.address)
	edit(t, filepath.Join(app, "components", "here.toml"), "oci://127.0.0.1:5000/charts", charts.registry)
	s.sync("contexts", app)
	k := &shop{install: &install{system: s, name: "t" + suffix(), app: app}}
	k.namespace = "contexts-" + k.name
	t.Cleanup(func() {
		if _, err := k.command("kubectl", "delete", "namespace", k.namespace, "--ignore-not-found", "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	var made ctlapi.Install
	s.post("/installs", map[string]any{
		"name": k.name, "app": "contexts", "customer": k.name, "create_customer": true, "stack": "local", "provision": true, "approve_all": true,
		"inputs": ctlapi.InputValues{"endpoint": west.address(), "authority": base64.StdEncoding.EncodeToString(west.ca), "token": west.token},
	}, &made)
	if w := k.finished(*made.WorkflowID, rolloutTimeout); w.State != "succeeded" {
		t.Fatalf("provision: %s", k.explain(w))
	}
	var stack ctlapi.Stack
	s.get("/installs/"+k.name+"/stack", &stack)
	k.runner = stack.Runner.ID
	file := filepath.Join(s.dir, "runners", stack.Runner.ID, "contexts", "west")

	t.Run("each object is in its own cluster alone", func(t *testing.T) {
		k := k.on(t)
		there := west.names("configmaps", k.namespace)
		if !slices.Contains(there, "settings") || !slices.Contains(there, "note-notes") || slices.Contains(there, "note-here") {
			t.Errorf("in the second cluster: %v", there)
		}
		if secrets := west.names("secrets", k.namespace); !slices.Contains(secrets, "sh.helm.release.v1.notes.v1") {
			t.Errorf("the release in the second cluster: %v", secrets)
		}
		here := k.kubectl("get", "configmaps,secrets", "--output", "name")
		if strings.Contains(here, "settings") || strings.Contains(here, "notes") || !strings.Contains(here, "configmap/note-here") {
			t.Errorf("in the sandbox's cluster: %s", here)
		}
	})

	t.Run("the charts are those of the repositories", func(t *testing.T) {
		k := k.on(t)
		if got := k.field("configmap/note-here", "{.data.note}"); got != "at home" {
			t.Errorf("the note is %q", got)
		}
		if charts.refused.Load() == 0 || charts.served.Load() == 0 {
			t.Errorf("the private repository refused %d requests without a password and answered %d with it", charts.refused.Load(), charts.served.Load())
		}
		for _, name := range []string{"builder.log", "runner.log"} {
			logs, _ := filepath.Glob(filepath.Join(s.dir, "log", "*"+name))
			for _, log := range logs {
				if raw, _ := os.ReadFile(log); strings.Contains(string(raw), chartPassword) {
					t.Errorf("%s has the password of the repository", log)
				}
			}
		}
	})

	t.Run("the control plane keeps a release, and it moves into the cluster", func(t *testing.T) {
		k := k.on(t)
		if records := k.kubectl("get", "configmaps,secrets", "--selector", "owner=helm", "--output", "name"); records != "" {
			t.Errorf("in the sandbox's cluster: %s", records)
		}
		if list := k.must("states", "list", k.name); !strings.Contains(list, "here") || strings.Contains(list, "at home") {
			t.Errorf("the vendor sees\n%s", list)
		}
		if raw := column(t, s.database(), `select s.summary::text from berth.tf_states s join berth.resources r on r.id = s.resource_id where r.name = 'here' and s.kind = 'current'`); len(raw) != 1 || strings.Contains(raw[0], "at home") || !strings.Contains(raw[0], "helm_revision") {
			t.Errorf("the control plane knows %v", raw)
		}
		shown, err := k.install.customer("state", "show", "here")
		if err != nil || !strings.Contains(shown, "helm_revision.here") || !strings.Contains(shown, `"deployed"`) || strings.Contains(shown, "at home") {
			t.Errorf("the customer sees, %v\n%s", err, shown)
		}
		if shown, err = k.install.customer("state", "show", "here", "--reveal"); err != nil || !strings.Contains(shown, "at home") {
			t.Errorf("revealed, %v\n%s", err, shown)
		}
		uid := k.field("configmap/note-here", "{.metadata.uid}")
		edit(t, filepath.Join(app, "components", "here.toml"), `"nuon"`, `"secret"`)
		s.sync("contexts", app)
		w := k.finished(k.deploy(true, "here").ID, rolloutTimeout)
		if w.State != "succeeded" {
			t.Fatalf("deploy: %s", k.explain(w))
		}
		if records := k.kubectl("get", "secrets", "--selector", "owner=helm", "--output", "name"); strings.Count(records, "sh.helm.release.v1.here.v") != 2 {
			t.Errorf("moved: %s", records)
		}
		if now := k.field("configmap/note-here", "{.metadata.uid}"); now != uid {
			t.Error("the object was made again")
		}
		if shown, err = k.install.customer("state", "show", "here"); err != nil || strings.Contains(shown, "helm_revision") {
			t.Errorf("the control plane still keeps it, %v\n%s", err, shown)
		}
	})

	t.Run("a script's kubectl looks at the second cluster", func(t *testing.T) {
		k := k.on(t)
		k.must("actions", "run", k.name, "look", "--watch", "--auto-approve")
		out := k.must("logs", k.name+"/look")
		if !strings.Contains(out, "configmap/settings") || strings.Contains(out, "note-here") || strings.Contains(out, west.token) {
			t.Errorf("the action shows\n%s", out)
		}
	})

	give := func(k *shop, kubeconfig []byte) {
		k.t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			k.t.Fatal(err)
		}
		if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
			k.t.Fatal(err)
		}
		k.t.Cleanup(func() { _ = os.Remove(file) })
	}
	for _, tc := range []struct {
		name       string
		kubeconfig func() []byte
		want       string // "" for a plan
	}{
		{"a token that has not expired opens it", func() []byte { return west.kubeconfig(west.ca, west.tokenOf(time.Hour)) }, ""},
		{"a token that has expired does not", func() []byte { return west.kubeconfig(west.ca, west.tokenOf(-time.Minute)) }, "does not accept these credentials"},
		{"an authority that did not sign its certificate is not believed", func() []byte { return west.kubeconfig(otherCA(t), west.token) }, "cannot be reached"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := k.on(t)
			give(k, tc.kubeconfig())
			w := k.finished(k.deploy(true, "settings").ID, time.Minute)
			st := step(w, "component/settings")
			switch {
			case tc.want == "" && (w.State != "succeeded" || st.Change.State != "no_change"):
				t.Errorf("deploy: %s", k.explain(w))
			case tc.want != "" && (w.State != "failed" || st.Error == nil || !strings.Contains(*st.Error, tc.want)):
				t.Errorf("deploy: %s, want a failure with %q", k.explain(w), tc.want)
			}
		})
	}

	t.Run("another cluster at the same address is not written to", func(t *testing.T) {
		k := k.on(t)
		edit(t, filepath.Join(app, "components", "settings.toml"), "blue", "green")
		s.sync("contexts", app)
		w := k.deploy(false, "settings")
		c := k.proposed(w.ID, "component/settings")
		west.replace()
		k.decide(c, "approve")
		k.eventually(time.Minute, "the change is refused", func() error {
			var now ctlapi.Change
			if err := k.call(http.MethodGet, "/changes/"+c.ID, nil, &now); err != nil {
				return err
			}
			if !slices.ContainsFunc(now.Differs, func(d ctlapi.Difference) bool { return d.Field == "target" }) {
				return fmt.Errorf("it is %s, and differs in %+v: %s", now.State, now.Differs, k.explain(k.workflow(w.ID)))
			}
			return nil
		})
		if err := west.call(http.MethodGet, "/api/v1/namespaces/"+k.namespace, nil, nil); err == nil {
			t.Error("the other cluster has the namespace")
		}
	})
}

// otherCA is an authority in PEM that signed nothing.
func otherCA(t *testing.T) []byte {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// chartRepository is a private repository of charts, made by the helm command, and
// a registry that has the same chart.
type chartRepository struct {
	address     string // https
	authority   string // file
	registry    string // oci://
	credentials string // file for builder
	served      atomic.Int64
	refused     atomic.Int64
}

const chartUser, chartPassword = "reader", "pa55-of-the-chart-repository"

func newChartRepository(t *testing.T) *chartRepository {
	t.Helper()
	dir, helm := t.TempDir(), os.Getenv("HELM")
	if helm == "" {
		helm = "helm"
	}
	chart := filepath.Join(dir, "notes")
	for name, text := range map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: notes\nversion: 1.0.0\n",
		"values.yaml":         "note: none\n",
		"templates/note.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"note-{{ .Release.Name }}\"}\ndata: {note: {{ .Values.note | quote }}}\n",
	} {
		file := filepath.Join(chart, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := &chartRepository{authority: filepath.Join(dir, "authority.pem"), credentials: filepath.Join(dir, "credentials.json")}
	files := filepath.Join(dir, "repository")
	r.registry = "oci://" + os.Getenv("BERTH_DEV_REGISTRY") + "/charts-" + suffix()
	for _, args := range [][]string{
		{"package", chart, "--destination", files},
		{"repo", "index", files},
		{"push", filepath.Join(files, "notes-1.0.0.tgz"), r.registry, "--plain-http"},
	} {
		cmd := exec.CommandContext(t.Context(), helm, args...)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("helm %v: %v: %s", args, err, out)
		}
	}
	serve := http.StripPrefix("/private", http.FileServer(http.Dir(files)))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user, password, _ := req.BasicAuth(); user != chartUser || password != chartPassword {
			r.refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.served.Add(1)
		serve.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r.address = server.URL + "/private"
	if res, err := server.Client().Get(r.address + "/index.yaml"); err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Fatalf("without a password the repository answers %v (%v)", res, err)
	} else {
		_ = res.Body.Close()
	}
	keys, err := json.Marshal(map[string]any{r.address + "/": map[string]string{"username": chartUser, "password": chartPassword}})
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for file, raw := range map[string][]byte{r.authority: authority, r.credentials: keys} {
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}
