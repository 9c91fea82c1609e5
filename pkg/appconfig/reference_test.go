package appconfig_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// TestReferencePage compares the keys on the reference page with those that are
// read, section by section.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/app-config.md")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string][]string{
		"metadata.toml":       keysOf(appconfig.Metadata{}, ""),
		"sandbox.toml":        keysOf(appconfig.Sandbox{}, ""),
		"runner.toml":         keysOf(appconfig.Runner{}, ""),
		"stack.toml":          keysOf(appconfig.Stack{}, ""),
		"inputs.toml":         append(keysOf(appconfig.InputGroup{}, "group[]."), keysOf(appconfig.Input{}, "input[].")...),
		"secrets.toml":        keysOf(appconfig.Secret{}, "secret[]."),
		"components/":         keysOf(appconfig.Component{}, ""),
		"terraform_module":    keysOf(appconfig.TerraformModule{}, ""),
		"helm_chart":          keysOf(appconfig.HelmChart{}, ""),
		"kubernetes_manifest": keysOf(appconfig.KubernetesManifest{}, ""),
		"container_image":     keysOf(appconfig.ContainerImage{}, ""),
		"actions/":            keysOf(appconfig.Action{}, ""),
		"Shared tables": slices.Concat(keysOf(appconfig.Repo{}, "public_repo."), keysOf(appconfig.Repo{}, "connected_repo."),
			keysOf(appconfig.SourceExtension{}, "berth."), keysOf(appconfig.VarFile{}, "var_file[]."), keysOf(appconfig.ValuesFile{}, "values_file[]."),
			keysOf(appconfig.OperationRole{}, "operation_roles[].")),
	}
	written := map[string][]string{}
	row := regexp.MustCompile("^\\| (`[^|]*`) \\|")
	section := ""
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		if m := row.FindStringSubmatch(line); m != nil {
			for key := range strings.SplitSeq(m[1], ", ") {
				written[section] = append(written[section], strings.Trim(key, "`"))
			}
		}
	}
	if diff := cmp.Diff(read, written, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("docs/reference/app-config.md (-read +written):\n%s", diff)
	}
}

// keysOf lists the key paths of a block. Tables that many blocks share are
// listed by their name only.
func keysOf(block any, prefix string) []string {
	shared := []any{appconfig.Repo{}, appconfig.SourceExtension{}, appconfig.VarFile{}, appconfig.ValuesFile{}, appconfig.OperationRole{}, appconfig.Text{}}
	var keys []string
	typ := reflect.TypeOf(block)
	for i := range typ.NumField() {
		f := typ.Field(i)
		key := f.Tag.Get("toml")
		if key == "" || key == "-" {
			continue
		}
		inner, suffix := f.Type, "."
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				suffix = "[]."
			}
			inner = inner.Elem()
		}
		isShared := slices.ContainsFunc(shared, func(s any) bool { return reflect.TypeOf(s) == inner })
		if inner.Kind() == reflect.Struct && !isShared {
			keys = append(keys, keysOf(reflect.Zero(inner).Interface(), prefix+key+suffix)...)
			continue
		}
		keys = append(keys, prefix+key)
	}
	return keys
}
