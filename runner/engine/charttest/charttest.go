// Package charttest makes charts of the shapes that large public ones have.
// Only tests import it.
package charttest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// How many CRDs of 48 KiB a chart has. In one record of a release Helm has room
// for ManyCRDs of them, and none for TooManyCRDs.
const (
	ManyCRDs    = 20
	TooManyCRDs = 40
)

const crdBytes = 48 << 10

// Stack is a chart like kube-prometheus-stack: dashboards in templates of its
// own, and a subchart whose crds/ has the CRDs. name goes into the names of the
// objects that live in no namespace.
func Stack(name string) map[string]string {
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: stack\nversion: 1.0.0\n" +
			"dependencies:\n  - {name: crds, version: 0.0.0, condition: crds.enabled}\n",
		"values.yaml":             "crds: {enabled: true}\ndashboards: true\n",
		"charts/crds/Chart.yaml":  "apiVersion: v2\nname: crds\nversion: 0.0.0\n",
		"charts/crds/values.yaml": "{}\n",
	}
	for i := range ManyCRDs {
		files[fmt.Sprintf("charts/crds/crds/kind%02d.yaml", i)] = crd(name, i)
	}
	for i := range 6 {
		files[fmt.Sprintf("templates/dashboard%d.yaml", i)] = fmt.Sprintf(
			"{{- if .Values.dashboards }}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dashboard%d\ndata:\n  dashboard.json: |\n%s{{- end }}\n",
			i, lines(fmt.Sprint(name, " dashboard ", i), "    ", 40<<10))
	}
	return files
}

// OperatorCRDs is a chart like prometheus-operator-crds: a subchart whose
// templates are the CRDs, and nothing else.
func OperatorCRDs(name string, number int) map[string]string {
	files := map[string]string{
		"Chart.yaml":              "apiVersion: v2\nname: operator-crds\nversion: 1.0.0\ndependencies:\n  - {name: crds, version: 0.0.0}\n",
		"values.yaml":             "crds: {annotations: {}}\n",
		"charts/crds/Chart.yaml":  "apiVersion: v2\nname: crds\nversion: 0.0.0\n",
		"charts/crds/values.yaml": "annotations: {}\n",
	}
	for i := range number {
		files[fmt.Sprintf("charts/crds/templates/kind%02d.yaml", i)] = crd(name, i)
	}
	return files
}

// Load reads a chart from its files.
func Load(t *testing.T, files map[string]string) *chart.Chart {
	t.Helper()
	var list []*loader.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, &loader.BufferedFile{Name: name, Data: []byte(files[name])})
	}
	c, err := loader.LoadFiles(list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// crd is a CRD with a long description, which gzip cannot make small.
func crd(name string, i int) string {
	group := name + ".charts.berth.test"
	kind := fmt.Sprintf("Kind%02d", i)
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[3]s.%[1]s
spec:
  group: %[1]s
  names: {kind: %[2]s, plural: %[3]s}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          description: |
%[4]s`, group, kind, plural, lines(group+kind, "            ", crdBytes))
}

// lines are lines of hexadecimal digits that are always the same for one seed.
func lines(seed, indent string, bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", seed, i))
		b.WriteString(indent + hex.EncodeToString(sum[:]) + "\n")
	}
	return b.String()
}
