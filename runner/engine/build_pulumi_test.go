package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func pulumiBuild(t *testing.T, files map[string]string) *jobDir {
	t.Helper()
	j := archiveJob(t, files)
	j.spec.Kind = jobspec.KindPulumi
	return j
}

// npmPackage is a package as npm packs it, whose install script leaves a file.
func npmPackage(t *testing.T, text string) (tgz, integrity string) {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for name, contents := range map[string]string{
		"package/package.json": `{"name": "dep", "version": "1.0.0", "main": "index.js", "bin": {"dep": "index.js"}, "scripts": {"postinstall": "echo ran > ran"}}`,
		"package/index.js":     text,
	} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(contents))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(contents)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(packed.Bytes())
	return packed.String(), "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// nodeProgram is a program that needs the package dep, by its lock file.
func nodeProgram(t *testing.T) map[string]string {
	t.Helper()
	tgz, integrity := npmPackage(t, "module.exports = 1\n")
	return map[string]string{
		"Pulumi.yaml": "name: shop\nruntime: nodejs\n", "index.js": "require('dep')\n", "dep.tgz": tgz,
		"package.json": `{"name": "shop", "version": "1.0.0", "dependencies": {"dep": "file:dep.tgz"}}`,
		"package-lock.json": fmt.Sprintf(`{"name": "shop", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
			"": {"name": "shop", "version": "1.0.0", "dependencies": {"dep": "file:dep.tgz"}},
			"node_modules/dep": {"version": "1.0.0", "resolved": "file:dep.tgz", "integrity": %q, "hasInstallScript": true, "bin": {"dep": "index.js"}}}}`, integrity),
	}
}

// npm is there where Node.js is.
func npm(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm: there is none; it comes with Node.js")
	}
}

// A program for Node.js is packed with the packages of its lock file, whose scripts
// run only if the app says so.
func TestBuildOfAPulumiProgramForNode(t *testing.T) {
	t.Parallel()
	npm(t)
	for name, scripts := range map[string]bool{"by default": false, "with scripts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := pulumiBuild(t, nodeProgram(t))
			if scripts {
				j.spec.Source.Pulumi = &jobspec.PulumiBuild{NpmScripts: true}
			}
			j.must(t)
			files := j.artifact(t)
			if files["node_modules/dep/index.js"] != "module.exports = 1\n" || files["node_modules/.bin/dep"] != "-> ../dep/index.js" {
				t.Errorf("the artifact is %q", files)
			}
			if ran := files["node_modules/dep/ran"] != ""; ran != scripts {
				t.Errorf("the package's script ran: %t", ran)
			}
		})
	}
}

func TestBuildOfAPulumiProgramRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func(t *testing.T, files map[string]string)
		// tools says that npm is needed to find out.
		tools  bool
		want   string
		lacked bool
	}{
		{name: "another package than the lock file says", tools: true, want: "integrity checksum failed", edit: func(t *testing.T, files map[string]string) {
			files["dep.tgz"], _ = npmPackage(t, "module.exports = 'stolen'\n")
		}},
		{name: "a lock file of other dependencies", tools: true, want: "npm ci", edit: func(_ *testing.T, files map[string]string) {
			files["package.json"] = strings.Replace(files["package.json"], "1.0.0", "1.0.0\", \"devDependencies\": {\"more\": \"1\"}, \"x\": \"", 1)
		}},
		{name: "a package outside of the folder", tools: true, want: "it leads out of the source", edit: func(_ *testing.T, files map[string]string) {
			files["package.json"] = `{"name": "shop", "version": "1.0.0", "dependencies": {"dep": "file:../../work"}}`
			files["package-lock.json"] = `{"name": "shop", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
				"": {"name": "shop", "version": "1.0.0", "dependencies": {"dep": "file:../../work"}}, "../../work": {"name": "dep", "version": "1.0.0"},
				"node_modules/dep": {"resolved": "../../work", "link": true}}}`
		}},
		{name: "no lock file", want: "there is neither a package-lock.json nor a node_modules", edit: func(_ *testing.T, files map[string]string) {
			delete(files, "package-lock.json")
		}},
		{name: "the lock file of another tool", want: "(yarn.lock is not read)", edit: func(_ *testing.T, files map[string]string) {
			files["yarn.lock"] = files["package-lock.json"]
			delete(files, "package-lock.json")
		}},
		{name: "no npm", lacked: true, want: "there is no npm on the machine that builds it", edit: func(*testing.T, map[string]string) {}},
		{name: "no go", lacked: true, want: "there is no go on the machine that builds it", edit: func(_ *testing.T, files map[string]string) {
			files["Pulumi.yaml"] = "name: shop\nruntime: go\n"
		}},
		{name: "a module that go.sum does not have", tools: true, want: "main.go:3:8: cannot find module providing package example.test/a", edit: func(_ *testing.T, files map[string]string) {
			files["Pulumi.yaml"], files["go.mod"] = "name: shop\nruntime: go\n", "module shop\n\ngo 1.24\n"
			files["main.go"] = "package main\n\nimport _ \"example.test/a\"\n\nfunc main() {}\n"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.tools {
				npm(t)
			}
			files := nodeProgram(t)
			tt.edit(t, files)
			j := pulumiBuild(t, files)
			if tt.lacked {
				withoutTools(t, j)
			}
			r := j.run(t)
			if r.Outcome != jobspec.OutcomeFailed || r.Remedy == "" {
				t.Errorf("outcome %s, remedy %q", r.Outcome, r.Remedy)
			}
			wantContains(t, "error", r.Error, tt.want)
		})
	}
}

// A program in Go that brings its vendor/ is compiled without downloading anything.
func TestBuildOfAPulumiProgramThatIsVendored(t *testing.T) {
	t.Parallel()
	j := pulumiBuild(t, map[string]string{
		"Pulumi.yaml": "name: shop\nruntime: go\n",
		"go.mod":      "module shop\n\ngo 1.24\n\nrequire example.test/a v1.0.0\n",
		"main.go":     "package main\n\nimport \"example.test/a\"\n\nfunc main() { println(a.Text) }\n",

		"vendor/modules.txt":         "# example.test/a v1.0.0\n## explicit; go 1.24\nexample.test/a\n",
		"vendor/example.test/a/a.go": "package a\n\nconst Text = \"vendored\"\n",
	})
	j.env["GOFLAGS"] = "-mod=mod" // of the operator; the build has its own
	j.must(t)
	if files := j.artifact(t); len(files[".berth-program"]) < 100_000 || !strings.Contains(files["Pulumi.yaml"], "binary: .berth-program") {
		t.Errorf("Pulumi.yaml is %q, the program has %d bytes", files["Pulumi.yaml"], len(files[".berth-program"]))
	}
}
