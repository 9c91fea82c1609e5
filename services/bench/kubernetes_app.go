package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// appFiles is an app without components.
//
//go:embed app
var appFiles embed.FS

// chart is the chart that all helm_chart components are, in an app folder.
const chart = "src/chart"

// kind is a kind of component, and how its own tool does the same.
type kind struct {
	name string
	tool string
	// component is what a component of this name is in an app folder.
	component func(name, namespace string) string
	// arguments are what the tool is called with to bring one to a value.
	arguments func(t *toolWay, name, value string) []string
	// begin does once what the tool needs before it can be called; nil for nothing.
	begin func(ctx context.Context, t *toolWay) error
	// verify fails unless all that the tool made has the value; nil: it is looked for in
	// the cluster.
	verify func(t *toolWay) error
}

// inCluster tells whether components of the kind are objects of a cluster.
func (k kind) inCluster() bool { return k.verify == nil }

// clusterKinds are those that are measured on a cluster.
var clusterKinds = []kind{
	{
		name: "helm_chart", tool: "helm upgrade",
		component: func(name, namespace string) string {
			return fmt.Sprintf(`# helm
name       = %[1]q
type       = "helm_chart"
chart_name = %[1]q
namespace  = %[2]q

[berth]
local_source = %[3]q

[values]
value = "{{ .nuon.inputs.inputs.value }}"
`, name, namespace, chart)
		},
		arguments: func(t *toolWay, name, value string) []string {
			return []string{"upgrade", "--install", name, filepath.Join(t.folder, chart), "--namespace", t.namespace, "--set", "value=" + value}
		},
	},
	{
		name: "kubernetes_manifest", tool: "kubectl apply --server-side",
		component: func(name, namespace string) string {
			return fmt.Sprintf(`# manifest
name      = %[1]q
type      = "kubernetes_manifest"
namespace = %[2]q
manifest  = """
%[3]s"""
`, name, namespace, line(name, "{{ .nuon.inputs.inputs.value }}"))
		},
		arguments: func(t *toolWay, name, _ string) []string {
			return []string{"apply", "--server-side", "--namespace", t.namespace, "--filename", t.manifest(name)}
		},
	},
}

// line is what the chart renders to.
func line(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  value: %q\n", name, value)
}

// names are those of n components.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("line-%02d", i+1)
	}
	return all
}

// writeApp makes an app folder with n components of a kind.
func writeApp(folder string, k kind, n int, namespace string) error {
	static, err := fs.Sub(appFiles, "app")
	if err != nil {
		return err
	}
	if err := os.CopyFS(folder, static); err != nil {
		return err
	}
	components := filepath.Join(folder, "components")
	if err := os.Mkdir(components, 0o755); err != nil {
		return err
	}
	for _, name := range names(n) {
		file := filepath.Join(components, name+".toml")
		if err := os.WriteFile(file, []byte(k.component(name, namespace)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
