package engine_test

import (
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// kustomizeJob is the build of a kustomization in an archive.
func kustomizeJob(t *testing.T, k jobspec.Kustomize, files map[string]string) *jobDir {
	t.Helper()
	j := archiveJob(t, files)
	j.spec.Kind, j.spec.Source.Kustomize = jobspec.KindKubernetesManifest, &k
	return j
}

// shopFiles is a kustomization in the style of public apps: bases and overlays,
// a component, generators, and templates in all places, quoted and not.
func shopFiles() map[string]string {
	return map[string]string{
		"base/kustomization.yaml": `
resources: [deployment.yaml, service.yaml]
configMapGenerator:
- name: settings
  literals: ["INSTALL={{.nuon.install.id}}", "MODE=fast"]
  files: [app.conf]
secretGenerator:
- name: keys
  literals: ["token={{ .nuon.inputs.inputs.token }}", "fixed=abc"]
`,
		"base/app.conf": "listen 80\n{{ if .nuon.inputs.inputs.debug }}\ndebug on\n{{ end }}\nhost \"{{ .nuon.inputs.inputs.host }}\"\n",
		"base/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # {{ .nuon.install.id }}
spec:
  replicas: {{ .nuon.inputs.inputs.replicas }}
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: nginx:1
        env:
        - name: PORT
          value: "{{ .nuon.inputs.inputs.port }}"
        - name: HOST
          value: '{{ index .nuon.inputs.inputs "host" }}'
        - {name: URL, value: "https://{{.nuon.inputs.inputs.host}}:{{.nuon.inputs.inputs.port}}/"}
        envFrom:
        - configMapRef: {name: settings}
        - secretRef: {name: keys}
`,
		"base/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n  ports: [{port: {{ .nuon.inputs.inputs.port }}}]\n",
		"labels/kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
commonAnnotations: {install: {{.nuon.install.id}}}
`,
		"overlays/production/kustomization.yaml": `
resources: [../../base]
components: [../../labels]
namePrefix: "{{ .nuon.install.id }}-"
images: [{name: nginx, newName: "{{ .nuon.components.web.outputs.image.repository }}", newTag: '{{ .nuon.components.web.outputs.image.tag }}'}]
patches:
- target: {kind: Deployment}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/args, value: ["--size={{ .nuon.inputs.inputs.replicas }}"]}
`,
		"replicas.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"{{ .nuon.install.id }}-web\"}\nspec: {minReadySeconds: {{ .nuon.inputs.inputs.replicas }}}\n",
	}
}

const shopManifest = "testdata/kustomize-shop.yaml"

// TestBuildKustomize makes the manifest of bases, overlays, a component, patches
// and generators. The templates of all of them are in it, quoted as they were.
func TestBuildKustomize(t *testing.T) {
	t.Parallel()
	build := func() string {
		j := kustomizeJob(t, jobspec.Kustomize{Path: "./overlays/production", Patches: []string{"replicas.yaml",
			"apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .nuon.install.id }}-web\"}\nspec: {type: NodePort}\n"}}, shopFiles())
		j.must(t)
		files := j.artifact(t)
		if len(files) != 1 {
			t.Errorf("the artifact is %v", files)
		}
		return files["manifest.yaml"]
	}
	got := build()
	want, err := os.ReadFile(shopManifest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if again := build(); again != got {
		t.Errorf("the same source gives another manifest:\n%s", cmp.Diff(got, again))
	}
}

// TestBuildKustomizeRefuses is what a source may not make kustomize read, run or
// fetch.
func TestBuildKustomizeRefuses(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	doubling := map[string]string{"k/0/kustomization.yaml": "resources: [a.yaml]\n", "k/0/a.yaml": object}
	for i := 1; i <= 16; i++ {
		dir := "k/" + strings.Repeat("x", i)
		below := "../0"
		if i > 1 {
			below = "../" + strings.Repeat("x", i-1)
		}
		doubling[dir+"/left/kustomization.yaml"] = "namePrefix: l\nresources: [../" + below + "]\n"
		doubling[dir+"/right/kustomization.yaml"] = "namePrefix: r\nresources: [../" + below + "]\n"
		doubling[dir+"/kustomization.yaml"] = "resources: [left, right]\n"
	}
	for _, tc := range []struct {
		name  string
		k     jobspec.Kustomize
		files map[string]string
		links map[string]string
		want  string
	}{
		{name: "no kustomization", files: map[string]string{"k/a.yaml": object}, want: "there is no kustomization.yaml in k"},
		{name: "no directory", k: jobspec.Kustomize{Path: "gone"}, want: `there is no directory "gone"`},
		{name: "a path outside", k: jobspec.Kustomize{Path: "../../in"}, want: "leads out of the source"},
		{name: "nothing in it", files: map[string]string{"k/kustomization.yaml": "namePrefix: a\n"}, want: "kustomization"},
		{name: "an absolute resource", files: map[string]string{"k/kustomization.yaml": "resources: [/etc/passwd]\n"}, want: "leads out of the source"},
		{name: "a base outside", files: map[string]string{"k/kustomization.yaml": "resources: [../../../../etc]\n"}, want: "leads out of the source"},
		{name: "a file outside", files: map[string]string{"k/kustomization.yaml": "configMapGenerator: [{name: a, files: [../../../../etc/passwd]}]\n"}, want: "file does not exist"},
		{name: "a file outside, unrestricted", k: jobspec.Kustomize{Path: "k", LoadRestrictor: "none"},
			files: map[string]string{"k/kustomization.yaml": "configMapGenerator: [{name: a, files: [../../../../etc/passwd]}]\n"}, want: "file does not exist"},
		{name: "an absolute file, unrestricted", k: jobspec.Kustomize{Path: "k", LoadRestrictor: "none"},
			files: map[string]string{"k/kustomization.yaml": "configMapGenerator: [{name: a, files: [/etc/passwd]}]\n"}, want: "file does not exist"},
		{name: "a link to a file outside", files: map[string]string{"k/kustomization.yaml": "configMapGenerator: [{name: a, files: [b]}]\n"},
			links: map[string]string{"k/b": "/etc/passwd"}, want: "path escapes"},
		{name: "a link to a directory outside", files: map[string]string{"k/kustomization.yaml": "resources: [b]\n"}, links: map[string]string{"k/b": "../../../out"}, want: "is not in the source"},
		{name: "a file next to it", files: map[string]string{"k/kustomization.yaml": "configMapGenerator: [{name: a, files: [../b]}]\n", "b": "x"}, want: "is not in or below"},
		{name: "a cycle", files: map[string]string{"k/kustomization.yaml": "resources: [../l]\n", "l/kustomization.yaml": "resources: [../k]\n"}, want: "cycle"},
		{name: "bases that double", k: jobspec.Kustomize{Path: "k/" + strings.Repeat("x", 16)}, files: doubling, want: "reads more than"},
		{name: "a huge file", files: map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\n", "k/a.yaml": strings.Repeat("# 0123456789\n", 800_000)}, want: "at most 8388608 are possible"},
		{name: "a YAML bomb", files: map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\n", "k/a.yaml": bomb()}, want: "its aliases stand for more than"},
		{name: "a YAML bomb in a patch", files: map[string]string{"k/kustomization.yaml": "patches:\n- patch: |\n    " + strings.ReplaceAll(bomb(), "\n", "\n    ") + "\n"}, want: "its aliases stand for more than"},
		{name: "too large a manifest", files: map[string]string{"k/kustomization.yaml": "configMapGenerator: [{name: a, files: [a]}]\n", "k/a": strings.Repeat("0123456789ab\n", 400_000)}, want: "at most 4194304"},

		{name: "a file address", files: base("file:///etc"), want: "only https is possible"},
		{name: "the metadata of a machine", files: base("http://169.254.169.254/latest/meta-data/a.yaml"), want: "only https is possible"},
		{name: "the same over https", files: base("https://169.254.169.254/latest/meta-data/a.yaml"), want: "a link-local address, where cloud machines get their secrets"},
		{name: "a repository there", files: base("https://169.254.169.254/a/b?ref=main"), want: "a link-local address, where cloud machines get their secrets"},
		{name: "ssh", files: base("ssh://git@github.com/a/b"), want: "is an SSH address"},
		{name: "scp", files: base("git@github.com:a/b"), want: "is an SSH address"},
		{name: "a path that git would take", files: base("x@y/a/b"), want: "is an SSH address"},
		{name: "credentials", files: base("https://me:hunter2@example.com/a/b"), want: "has a user name or a password"},
		{name: "a remote helper", files: base("ext::sh -c whoami"), want: "is not in the source"},
		{name: "an option", files: base("https://127.0.0.1:1/a/b?ref=--upload-pack=x"), want: "cannot be a branch"},
		{name: "out of a repository", files: base("https://127.0.0.1:1/a/b//../../c"), want: "leads out of its repository"},
		{name: "a directory named like an address", files: map[string]string{"k/kustomization.yaml": "resources: [github.com.invalid/a]\n"}, want: "is not in the source"},
		{name: "nobody listens", files: base("https://127.0.0.1:1/a/b"), want: "https://127.0.0.1:1/a/b cannot be fetched: 127.0.0.1:1 refuses the connection"},
		{name: "a patch from elsewhere", files: map[string]string{"k/kustomization.yaml": "patches: [{path: \"https://127.0.0.1:1/p.yaml\"}]\n"}, want: "which only resources and components may be"},
		{name: "a generator's file from elsewhere", files: map[string]string{"k/kustomization.yaml": "configMapGenerator: [{name: a, files: [\"a=http://127.0.0.1:1/p\"]}]\n"}, want: "which only resources and components may be"},
		{name: "a schema from elsewhere", files: map[string]string{"k/kustomization.yaml": "openapi: {path: \"http://127.0.0.1:1/p\"}\n"}, want: "which only resources and components may be"},

		{name: "an exec function", files: map[string]string{"k/kustomization.yaml": "generators: [g.yaml]\n",
			"k/g.yaml": "apiVersion: x/v1\nkind: Run\nmetadata: {name: a, annotations: {config.kubernetes.io/function: \"exec: {path: ./run}\"}}\n"}, want: "plugins of kustomize that run programs are off"},
		{name: "a Go plugin, inline", files: map[string]string{"k/kustomization.yaml": "transformers:\n- |-\n  apiVersion: x/v1\n  kind: Run\n  metadata: {name: a}\n"}, want: "plugins of kustomize that run programs are off"},
		{name: "the helm generator by hand", files: map[string]string{"k/kustomization.yaml": "generators:\n- |-\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {name: a}\n  name: x\n"}, want: "plugins of kustomize that run programs are off"},
		{name: "a generator that reads an address", files: map[string]string{"k/kustomization.yaml": "transformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: a}\n  path: http://127.0.0.1:1/x\n"}, want: "from elsewhere"},
		{name: "generators of a directory", files: map[string]string{"k/kustomization.yaml": "generators: [g]\n", "k/g/kustomization.yaml": "{}"}, want: "is not a file of the source"},
		{name: "charts that are not asked for", files: map[string]string{"k/kustomization.yaml": "helmCharts: [{name: a}]\n"}, want: "set enable_helm = true"},
		{name: "a chart by file", k: jobspec.Kustomize{Path: "k", EnableHelm: true}, files: map[string]string{"k/kustomization.yaml": "helmCharts: [{name: a, repo: \"file:///etc\"}]\n"}, want: "write its https:// or oci:// address"},

		{name: "a template on a line of its own", files: map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\n", "k/a.yaml": "{{ if .nuon.install.id }}\n" + object + "{{ end }}\n"}, want: "a.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.k.Path == "" {
				tc.k.Path = "k"
			}
			if tc.files == nil {
				tc.files = map[string]string{"README.md": "x"}
			}
			j := kustomizeJob(t, tc.k, tc.files)
			for name, target := range tc.links {
				if err := os.Symlink(target, filepath.Join(j.path, "in/source", name)); err != nil {
					t.Fatal(err)
				}
			}
			r := j.run(t)
			wantContains(t, "error", r.Error, tc.want)
			if r.Outcome != jobspec.OutcomeFailed || r.Remedy == "" || strings.Contains(r.Error+j.log(t), "hunter2") || strings.Contains(r.Error, j.path) {
				t.Errorf("outcome %s, %q, remedy %q", r.Outcome, r.Error, r.Remedy)
			}
			t.Logf("%s; %s", r.Error, r.Remedy)
		})
	}
}

func base(entry string) map[string]string {
	return map[string]string{"k/kustomization.yaml": "resources: [\"" + entry + "\"]\n"}
}

// bomb is YAML whose aliases multiply.
func bomb() string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 10; i++ {
		n, before := string(rune('0'+i)), "*a"+string(rune('0'+i-1))
		text += "a" + n + ": &a" + n + " [" + strings.Repeat(before+",", 9) + before + "]\n"
	}
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + text
}

// TestBuildKustomizeFromElsewhere fetches bases: a repository by a tag and by its
// commit, a file, and what that repository names itself.
func TestBuildKustomizeFromElsewhere(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-git}\n"
	r.commit(t, map[string]string{"deploy/kustomization.yaml": "resources: [a.yaml, ../shared]\n", "deploy/a.yaml": object,
		"shared/kustomization.yaml": "resources: [s.yaml]\n", "shared/s.yaml": strings.ReplaceAll(object, "from-git", "shared")})
	r.git(t, "tag", "-a", "v1", "-m", "one")
	commit := r.git(t, "rev-parse", "HEAD")
	r.commit(t, map[string]string{"deploy/a.yaml": strings.ReplaceAll(object, "from-git", "newer")})
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Root: "/acme/app",
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Join(r.dir, ".git"), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
	mux := http.NewServeMux()
	mux.Handle("/acme/app/", backend)
	mux.HandleFunc("/raw/one.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.ReplaceAll(object, "from-git", "from-a-file")))
	})
	mux.HandleFunc("/raw/away.yaml", func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "http://169.254.169.254/latest", http.StatusFound)
	})
	mux.HandleFunc("/raw/long.yaml", func(w http.ResponseWriter, _ *http.Request) {
		for range 5 << 10 {
			if _, err := w.Write([]byte(strings.Repeat("#", 1024))); err != nil {
				return
			}
		}
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	run := func(entries ...string) (jobspec.Result, *jobDir) {
		j := kustomizeJob(t, jobspec.Kustomize{Path: "k"}, map[string]string{"k/kustomization.yaml": "namePrefix: my-\nresources: [\"" + strings.Join(entries, `", "`) + "\"]\n"})
		j.write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
		j.env["SSL_CERT_FILE"] = filepath.Join(j.path, "ca.pem")
		return j.run(t), j
	}
	for _, tc := range []struct{ name, ref, want string }{
		{"a tag", "v1", "my-from-git"}, {"a commit", commit, "my-from-git"}, {"a branch", "main", "my-newer"}, {"the default branch", "", "my-newer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result, j := run(server.URL+"/acme/app//deploy?ref="+tc.ref, server.URL+"/raw/one.yaml")
			if result.Outcome != jobspec.OutcomeSucceeded {
				t.Fatalf("%s\n%s", result.Error, j.log(t))
			}
			for _, want := range []string{"name: " + tc.want, "name: my-shared", "name: my-from-a-file"} {
				wantContains(t, "manifest", j.artifact(t)["manifest.yaml"], want)
			}
		})
	}
	for _, tc := range []struct{ name, entry, want string }{
		{"no such ref", "/acme/app//deploy?ref=gone", `it has no branch or tag "gone"`},
		{"no such directory", "/acme/app//gone?ref=v1", `there is no "gone" in that repository`},
		{"no such repository", "/acme/none", "/acme/none cannot be fetched"},
		{"no such file", "/raw/two.yaml", "the server answers 404 Not Found"},
		{"a redirect to the metadata", "/raw/away.yaml", "it leads to an address that is not https"},
		{"without end", "/raw/long.yaml", "it has more than 4 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result, _ := run(server.URL + tc.entry)
			wantContains(t, "error", result.Error, tc.want)
			wantContains(t, "error", result.Error, server.URL)
			t.Logf("%s; %s", result.Error, result.Remedy)
		})
	}
}

// TestBuildKustomizeCharts renders charts of the source without a helm program.
func TestBuildKustomizeCharts(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"k/kustomization.yaml": `namePrefix: my-
helmCharts:
- {name: web, releaseName: rel, namespace: there, includeCRDs: true, valuesFile: v.yaml, valuesInline: {size: "{{ .nuon.inputs.inputs.size }}"}, skipTests: true}
`,
		"k/v.yaml":                         "size: one\ncolor: blue\n",
		"k/charts/web/Chart.yaml":          "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"k/charts/web/values.yaml":         "size: none\ncolor: none\n",
		"k/charts/web/crds/c.yaml":         "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: c.example.com}\n",
		"k/charts/web/templates/a.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {size: {{ .Values.size | quote }}, color: {{ .Values.color }}, in: {{ .Release.Namespace }}}\n",
		"k/charts/web/templates/test.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n",
	}
	j := kustomizeJob(t, jobspec.Kustomize{Path: "k", EnableHelm: true}, files)
	j.env["PATH"] = "" // no helm, no git
	j.must(t)
	const want = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: c.example.com
---
apiVersion: v1
data:
  color: blue
  in: there
  size: "{{ .nuon.inputs.inputs.size }}"
kind: ConfigMap
metadata:
  name: my-rel
`
	if diff := cmp.Diff(want, j.artifact(t)["manifest.yaml"]); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}
