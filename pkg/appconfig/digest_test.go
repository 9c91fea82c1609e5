package appconfig_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// TestEveryKeyIsBuildOrDeploy walks the blocks that are built: a field belongs
// to exactly one digest, so a new key cannot be forgotten.
func TestEveryKeyIsBuildOrDeploy(t *testing.T) {
	t.Parallel()
	build := map[string][]string{
		"Component":          {"Type", "PublicRepo", "ConnectedRepo", "SourceFile"},
		"TerraformModule":    {"TerraformVersion"},
		"HelmChart":          {"HelmRepo"},
		"KubernetesManifest": {"Manifest", "Kustomize"},
		"ContainerImage":     {"Public", "ECR"},
		"DockerBuild":        {"Dockerfile", "EnvVars", "Target", "Args", "Context", "Platforms", "Network", "Secrets"},
		"Pulumi":             {"Runtime", "NpmScripts"},
		"Job":                {"ImageURL", "Tag"},
		"Sandbox":            {"Type", "TerraformVersion", "Runtime", "PublicRepo", "ConnectedRepo", "SourceFile"},
		"BlockExtension":     {"LocalSource", "Tool"},
	}
	others := []reflect.Type{reflect.TypeFor[appconfig.Component](), reflect.TypeFor[appconfig.Sandbox](), reflect.TypeFor[appconfig.BlockExtension]()}
	for _, typ := range append(appconfig.TypeBlocks(), others...) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Name == "At" || f.Name == "Overrides" {
				continue // where it is written, not what it says
			}
			want := "deploy"
			if slices.Contains(build[typ.Name()], f.Name) {
				want = "build"
			}
			if typ.Name() == "Component" && f.Type.Kind() == reflect.Pointer && f.Tag.Get("toml") == "-" {
				want = "inside" // the keys of one type, walked on their own
			}
			switch {
			case f.Name == "Berth":
				want = "mixed" // walked on its own, too
			case typ.Name() == "BlockExtension" && (f.Name == "OCISource" || f.Name == "ImageKey"):
				want = "build"
			case typ.Name() == "BlockExtension" && want == "deploy" && f.Name != "Plugin":
				want = "config" // people and guardrails read it; nothing is made of it
			}
			if got := f.Tag.Get("digest"); got != want {
				t.Errorf("%s.%s: has the digest tag %q, want %q: decide whether the key changes what is built", typ.Name(), f.Name, got, want)
			}
		}
	}
}

// TestChangedFieldChangesOneDigest sets every field and watches the digests.
func TestChangedFieldChangesOneDigest(t *testing.T) {
	t.Parallel()
	empty := func() *appconfig.Component {
		var c appconfig.Component
		for i := range reflect.TypeFor[appconfig.Component]().NumField() {
			if f := reflect.TypeFor[appconfig.Component]().Field(i); f.Tag.Get("digest") == "inside" {
				reflect.ValueOf(&c).Elem().Field(i).Set(reflect.New(f.Type.Elem()))
			}
		}
		return &c
	}
	zero := empty()
	check := func(name, tag string, changed *appconfig.Component) {
		build := zero.BuildDigest("src") != changed.BuildDigest("src")
		deploy := zero.DeployDigest() != changed.DeployDigest()
		if build != (tag == "build") || deploy != (tag == "deploy") {
			t.Errorf("%s is tagged %q: build digest changed %v, deploy digest changed %v", name, tag, build, deploy)
		}
	}
	for i := range reflect.TypeFor[appconfig.Component]().NumField() {
		f := reflect.TypeFor[appconfig.Component]().Field(i)
		if tag := f.Tag.Get("digest"); tag != "inside" && tag != "mixed" {
			changed := empty()
			fill(reflect.ValueOf(changed).Elem().Field(i))
			check(f.Name, f.Tag.Get("digest"), changed)
			continue
		}
		for k := range f.Type.Elem().NumField() {
			inner := f.Type.Elem().Field(k)
			changed := empty()
			block := reflect.ValueOf(changed).Elem().Field(i)
			if block.IsNil() {
				block.Set(reflect.New(f.Type.Elem()))
			}
			fill(block.Elem().Field(k))
			check(f.Name+"."+inner.Name, inner.Tag.Get("digest"), changed)
		}
	}
	if zero.BuildDigest("a") == zero.BuildDigest("b") {
		t.Error("the source's digest is not part of the build digest")
	}
}

// fill gives a field some value other than its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), elem)
	case reflect.Interface:
		v.Set(reflect.ValueOf("x"))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}
