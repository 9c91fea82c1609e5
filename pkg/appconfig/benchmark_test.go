package appconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// BenchmarkValidate reads, checks and orders an app of 300 components, 500
// actions and 2,000 files that they name, from the disk.
func BenchmarkValidate(b *testing.B) {
	dir := b.TempDir()
	for name, contents := range largeApp() {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		app, diags := appconfig.CheckFormat(os.DirFS(dir), appconfig.LoadOptions{})
		if len(diags) > 0 {
			b.Fatalf("the app has problems:\n%s", render(diags))
		}
		graph, cycles := appconfig.NewGraph(app)
		if len(cycles) > 0 || len(graph.Order()) != largeComponents || len(app.Actions) != largeActions {
			b.Fatalf("got %d components and %d actions in order", len(graph.Order()), len(app.Actions))
		}
	}
	b.ReportMetric(float64((cpuTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// cpuTime is what the process has used of all cores: unlike the time on the
// clock it says the same on a busy machine.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// The size of largeApp.
const (
	largeComponents = 300
	largeActions    = 500
	largeFiles      = 2000 // that keys name: values files, var files, scripts
)

// largeApp generates an app without problems. Each component needs up to three
// earlier ones, mostly by what its files read.
func largeApp() map[string]string {
	files := map[string]string{}
	for name, contents := range minimal {
		files[name] = contents
	}
	var inputs strings.Builder
	inputs.WriteString("[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n")
	for i := range 100 {
		fmt.Fprintf(&inputs, "[[input]]\nname = \"input_%d\"\ndisplay_name = \"I\"\ndescription = \"d\"\ngroup = \"g\"\ndefault = \"%d\"\n", i, i)
	}
	files["inputs.toml"] = inputs.String()
	left := largeFiles - largeActions
	for i := range largeComponents {
		var c strings.Builder
		named := left / (largeComponents - i)
		left -= named
		isChart := i%2 == 0
		if isChart {
			fmt.Fprintf(&c, "name = \"c%d\"\ntype = \"helm_chart\"\nchart_name = \"c%d\"\n", i, i)
		} else {
			fmt.Fprintf(&c, "name = \"c%d\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n", i)
		}
		if i > 10 {
			fmt.Fprintf(&c, "dependencies = [\"c%d\"]\n", i-10)
		}
		c.WriteString("[berth]\nlocal_source = \"src/base\"\n")
		for n := range named {
			file := fmt.Sprintf("files/c%d-%d.yaml", i, n)
			table := "var_file"
			if isChart {
				table = "values_file"
			}
			fmt.Fprintf(&c, "[[%s]]\ncontents = \"./%s\"\n", table, file)
			files["components/"+file] = largeFile(i, n, isChart)
		}
		fmt.Fprintf(&c, "[v%s]\nx = \"{{ .nuon.inputs.inputs.input_%d }}\"\ny = \"{{ .nuon.install.id }}-%d\"\n", map[bool]string{true: "alues", false: "ars"}[isChart], i%100, i)
		files[fmt.Sprintf("components/c%d.toml", i)] = c.String()
	}
	for i := range largeActions {
		files[fmt.Sprintf("actions/a%d.toml", i)] = fmt.Sprintf("name = \"a%d\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"*/5 * * * *\"\n"+
			"[[steps]]\nname = \"s\"\ninline_contents = \"./a%d.sh\"\n[steps.env_vars]\nURL = \"{{ .nuon.components.c%d.outputs.url }}\"\n", i, i, i%largeComponents)
		files[fmt.Sprintf("actions/a%d.sh", i)] = "#!/bin/sh\nset -eu\n" + strings.Repeat("echo a line of a script\n", 30)
	}
	return files
}

// largeFile is about 1 KiB: every second one is a template.
func largeFile(component, n int, isChart bool) string {
	var b strings.Builder
	for line := range 25 {
		if isChart {
			fmt.Fprintf(&b, "key%d:\n  name: a value of some length\n", line)
		} else {
			fmt.Fprintf(&b, "key%d = \"a value of some length\"\n", line)
		}
	}
	if component > n && n%2 == 0 {
		if isChart {
			fmt.Fprintf(&b, "url: {{ .nuon.components.c%d.outputs.url }}\n", component-n-1)
		} else {
			fmt.Fprintf(&b, "url = \"{{ .nuon.components.c%d.outputs.url }}\"\n", component-n-1)
		}
	}
	return b.String()
}
