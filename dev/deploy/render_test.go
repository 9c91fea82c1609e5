package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	manifests = "../../deploy/k8s"
	chart     = "../../deploy/chart"
)

// asProduction are the values that make the chart overlays/production.
var asProduction = []string{"--values", filepath.Join(chart, "examples", "production.yaml")}

// program is the path of kubectl or helm: that of a variable, of make kube, or one
// on PATH.
func program(t *testing.T, variable, name string) string {
	t.Helper()
	for _, at := range []string{os.Getenv(variable), filepath.Join("..", "..", ".bin", "kube", name), name} {
		if path, err := exec.LookPath(at); at != "" && err == nil {
			return path
		}
	}
	t.Skipf("kubernetes: there is no %s to render with; make kube builds one", name)
	return ""
}

// rendered has what was rendered, by what: many tests look at the same.
var rendered sync.Map

func once(t *testing.T, what string, do func() (string, error)) string {
	t.Helper()
	run, _ := rendered.LoadOrStore(what, sync.OnceValues(do))
	out, err := run.(func() (string, error))()
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
	return out
}

// with is the overlay of somebody who adds components to one of ours.
func with(overlay string, components ...string) string {
	return strings.Join(append([]string{overlay}, components...), " ")
}

// render renders an overlay, or one of with.
func render(t *testing.T, overlay string) string {
	t.Helper()
	kubectl := program(t, "KUBECTL", "kubectl")
	return once(t, overlay, func() (string, error) {
		name, components, more := strings.Cut(overlay, " ")
		if !more {
			return output(kubectl, "kustomize", filepath.Join(manifests, "overlays", name))
		}
		dir, err := os.MkdirTemp("", "berth-overlay-")
		if err != nil {
			return "", err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := writeOverlay(dir, name, strings.Split(components, " ")); err != nil {
			return "", err
		}
		return output(kubectl, "kustomize", dir)
	})
}

func writeOverlay(dir, overlay string, components []string) error {
	// kustomize takes relative paths only, from where the folder really is.
	from, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	here, err := filepath.Abs(manifests)
	if err != nil {
		return err
	}
	base, err := filepath.Rel(from, here)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: berth\nresources: [%s/overlays/%s]\ncomponents:\n", base, overlay)
	for _, component := range components {
		text += fmt.Sprintf("  - %s/components/%s\n", base, component)
	}
	return os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)
}

// renderChart renders the chart as release "berth" in the namespace "berth", with
// the values of asProduction and what the flags change.
func renderChart(t *testing.T, flags ...string) string {
	t.Helper()
	helm := program(t, "HELM", "helm")
	return once(t, "chart "+strings.Join(flags, " "), func() (string, error) {
		return helmTemplate(helm, slices.Concat(asProduction, flags)...)
	})
}

func helmTemplate(helm string, flags ...string) (string, error) {
	return output(helm, append([]string{"template", "berth", chart, "--namespace", "berth"}, flags...)...)
}

// output is what a command prints; no test ends it, since others wait for it too.
func output(command string, args ...string) (string, error) {
	out, err := exec.Command(command, args...).CombinedOutput()
	return string(out), err
}
