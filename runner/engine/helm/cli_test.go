package helm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	helm := os.Getenv("HELM")
	if helm == "" {
		helm, _ = filepath.Abs("../../../.bin/kube/helm")
	}
	if _, err := os.Stat(helm); err != nil {
		t.Skip("no helm: `make kube` builds one, or set HELM")
	}
	given, err := yaml.Marshal(values())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, given, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range charts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), helm, "template", "web", dir,
				"--namespace", "shop", "--kube-version", caps().KubeVersion.Version, "--values", file)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			want, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			options := chartutil.ReleaseOptions{Name: "web", Namespace: "shop", Revision: 1, IsInstall: true}
			got, err := render(load(t, dir), values(), options, caps(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), asPrinted(got)); diff != "" {
				t.Errorf("(-helm +ours):\n%s", diff)
			}
		})
	}
}

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
