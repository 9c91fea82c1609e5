// Package appconfigtest makes app folders for tests and benchmarks. Only they
// import it.
package appconfigtest

import (
	"fmt"
	"strings"
	"testing/fstest"
)

// The size of Large.
const (
	LargeComponents = 300
	LargeActions    = 500
	LargeFiles      = 2000 // that keys name: values files, var files, scripts
)

// Large generates an app without problems. Each component needs up to three
// earlier ones, mostly by what its files read.
func Large() fstest.MapFS {
	files := map[string]string{
		"metadata.toml":    "version = \"v2\"\n",
		"sandbox.toml":     "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n",
		"runner.toml":      "runner_type = \"local\"\n",
		"stack.toml":       `type = "local"`,
		"src/base/main.tf": largeModule(),
	}
	var inputs strings.Builder
	inputs.WriteString("[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n")
	for i := range 100 {
		fmt.Fprintf(&inputs, "[[input]]\nname = \"input_%d\"\ndisplay_name = \"I\"\ndescription = \"d\"\ngroup = \"g\"\ndefault = \"%d\"\n", i, i)
	}
	files["inputs.toml"] = inputs.String()
	left := LargeFiles - LargeActions
	for i := range LargeComponents {
		var c strings.Builder
		named := left / (LargeComponents - i)
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
	for i := range LargeActions {
		files[fmt.Sprintf("actions/a%d.toml", i)] = fmt.Sprintf("name = \"a%d\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"*/5 * * * *\"\n"+
			"[[steps]]\nname = \"s\"\ninline_contents = \"./a%d.sh\"\n[steps.env_vars]\nURL = \"{{ .nuon.components.c%d.outputs.url }}\"\n", i, i, i%LargeComponents)
		files[fmt.Sprintf("actions/a%d.sh", i)] = "#!/bin/sh\nset -eu\n" + strings.Repeat("echo a line of a script\n", 30)
	}
	folder := fstest.MapFS{}
	for name, contents := range files {
		folder[name] = &fstest.MapFile{Data: []byte(contents), Mode: 0o644}
	}
	return folder
}

// largeModule declares what vars and var files of the components give.
func largeModule() string {
	var b strings.Builder
	names := []string{"x", "y", "url"}
	for line := range 25 {
		names = append(names, fmt.Sprintf("key%d", line))
	}
	for _, name := range names {
		fmt.Fprintf(&b, "variable %q {\n  default = null\n}\n", name)
	}
	return b.String()
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
