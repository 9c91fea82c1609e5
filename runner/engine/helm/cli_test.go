package helm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

// What we render is what `helm template` prints, the executable that customers
// have.
func TestRenderIsThatOfTheHelmCommand(t *testing.T) {
	t.Parallel()
	helm := helmCommand(t)
	for name, dir := range charts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendersLike(t, helm, dir, values())
		})
	}
}

// The same for charts that others made, with the values that they come with.
func TestRenderOfPublicCharts(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("BERTH_TEST_PUBLIC")
	if dir == "" {
		t.Skip("no public charts: set BERTH_TEST_PUBLIC to what dev/scripts/public.sh prints")
	}
	helm := helmCommand(t)
	found, err := filepath.Glob(filepath.Join(dir, "charts", "*", "Chart.yaml"))
	if err != nil || len(found) < 11 {
		t.Fatalf("%d charts in %s: %v", len(found), dir, err)
	}
	for _, file := range found {
		chart := filepath.Dir(file)
		t.Run(filepath.Base(chart), func(t *testing.T) {
			t.Parallel()
			rendersLike(t, helm, chart, map[string]any{})
		})
	}
}

// helmCommand is the executable to compare with.
func helmCommand(t *testing.T) string {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		helm, _ = filepath.Abs("../../../.bin/kube/helm")
	}
	if _, err := os.Stat(helm); err != nil {
		t.Skip("no helm: `make kube` builds one, or set HELM")
	}
	return helm
}

// rendersLike compares our render of a chart with that of the helm command.
// Values that a chart makes up each time, such as keys, count as equal.
func rendersLike(t *testing.T, helm, dir string, values map[string]any) {
	t.Helper()
	given, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, given, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), helm, "template", "web", dir,
		"--namespace", "shop", "--kube-version", caps().KubeVersion.Version, "--values", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	want, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	options := chartutil.ReleaseOptions{Name: "web", Namespace: "shop", Revision: 1, IsInstall: true}
	got, err := render(load(t, dir), values, options, caps(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutKeys(string(want)), withoutKeys(asPrinted(got))); diff != "" {
		t.Errorf("(-helm +ours):\n%s", diff)
	}
}

// madeUp are certificates and keys in base64, long enough that no name is one,
// and the annotation by which a chart makes each upgrade restart its pods.
var madeUp = regexp.MustCompile(`[A-Za-z0-9+/]{120,}={0,2}|rollme: "\w{5}"`)

func withoutKeys(text string) string { return madeUp.ReplaceAllString(text, "(made up)") }

// asPrinted is a render as `helm template` prints it: the hooks behind the rest.
func asPrinted(r rendered) string {
	var b strings.Builder
	if manifest := strings.TrimSpace(r.Manifest); manifest != "" {
		b.WriteString(manifest + "\n")
	} else {
		b.WriteString("\n")
	}
	for _, h := range r.Hooks {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", h.Path, h.Manifest)
	}
	return b.String()
}
