package helm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/strvals"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

func valuesJob(spec *jobspec.HelmChart) *job.Job {
	return &job.Job{
		Spec:      jobspec.Spec{InstallID: "ins_1", Work: jobspec.Work{HelmChart: spec}, State: []byte(`{"name":"acme","size":3,"password":"p,a=s\\s}"}`)},
		StartedAt: time.Now(),
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		files  []string
		values map[string]string
		own    string // of the install
		want   map[string]any
	}{
		{name: "none", want: map[string]any{}},
		{
			name:  "later files win, and maps are merged",
			files: []string{"a: {x: 1, z: 2}\nb: [1]\n", "a: {z: 3}\nb: [2]\n"},
			want:  map[string]any{"a": map[string]any{"x": 1.0, "z": 3.0}, "b": []any{2.0}},
		},
		{
			name:   "values win over files",
			files:  []string{"image: {tag: old, name: web}"},
			values: map[string]string{"image.tag": "new"},
			want:   map[string]any{"image": map[string]any{"tag": "new", "name": "web"}},
		},
		{
			name: "types are inferred",
			values: map[string]string{
				"bool": "true", "int": "3", "null": "null", "zeros": "007", "float": "1.5", "empty": "", "list": "{a,b}", "words": "a b",
			},
			want: map[string]any{
				"bool": true, "int": int64(3), "null": nil, "zeros": "007", "float": "1.5", "empty": "", "list": []any{"a", "b"}, "words": "a b",
			},
		},
		{
			name:   "a value is one value, whatever is in it",
			values: map[string]string{"a": "1,b=2", "b": `C:\x`, "c": "{not closed", "d": "x{1}"},
			want:   map[string]any{"a": "1,b=2", "b": `C:\x`, "c": "{not closed", "d": "x{1}"},
		},
		{
			name:   "paths have indices and escaped dots",
			values: map[string]string{"hosts[0].name": "a", "hosts[1].name": "b", `sel.kubernetes\.io/os`: "linux"},
			want: map[string]any{
				"hosts": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}},
				"sel":   map[string]any{"kubernetes.io/os": "linux"},
			},
		},
		{
			name:   "what the install says wins over files and values, and maps are merged",
			files:  []string{"image: {tag: old, name: web}\nhosts: [a, b]\nkeep: 1"},
			values: map[string]string{"image.tag": "new", "replicas": "2"},
			own:    "image: {tag: own}\nreplicas: 3\nhosts: [\"{{ .nuon.name }}\"]\n",
			want:   map[string]any{"image": map[string]any{"tag": "own", "name": "web"}, "replicas": 3.0, "hosts": []any{"acme"}, "keep": 1.0},
		},
		{
			name:   "templates are rendered in both",
			files:  []string{"name: {{ .nuon.name }}\nsize: {{ .nuon.size }}"},
			values: map[string]string{"password": "{{ .nuon.password }}"},
			want:   map[string]any{"name": "acme", "size": 3.0, "password": `p,a=s\s}`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spec := &jobspec.HelmChart{ValuesFiles: tc.files, Values: tc.values, InstallValues: tc.own}
			got, err := renderValues(valuesJob(spec), spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// A value without marks of the parser is what `helm --set` makes of it.
func TestValuesAreThoseOfHelm(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"true", "False", "0", "-3", "012", "9223372036854775807", "1e3", "null", "NULL", "{a,b}", "{}", "{1,true}", "a=b", "v1.2.3"} {
		want := map[string]any{}
		if err := strvals.ParseInto("a.b="+value, want); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		if err := set(got, "a.b", value); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

func TestValuesThatCannotBe(t *testing.T) {
	t.Parallel()
	const secret = "hunter22"
	for _, tc := range []struct {
		name string
		spec jobspec.HelmChart
		want string
	}{
		{name: "no map", spec: jobspec.HelmChart{ValuesFiles: []string{"a: 1", "- " + secret}}, want: "values_file 2 is no YAML map"},
		{name: "no YAML", spec: jobspec.HelmChart{ValuesFiles: []string{"a: `" + secret}}, want: "values_file 1 is no YAML map"},
		{name: "two paths in one", spec: jobspec.HelmChart{Values: map[string]string{"a=1,b": secret}}, want: "values.a=1,b: it is no path of one value"},
		{name: "through what is no map", spec: jobspec.HelmChart{ValuesFiles: []string{"a: 1"}, Values: map[string]string{"a.b": secret}}, want: "values.a.b: the path cannot be set"},
		{name: "a huge index", spec: jobspec.HelmChart{Values: map[string]string{"a[99999999]": secret}}, want: "values.a[99999999]: the path cannot be set"},
		{name: "no map of the install", spec: jobspec.HelmChart{InstallValues: "- " + secret}, want: "helm_values of the install is no YAML map"},
		{name: "what is not there, of the install", spec: jobspec.HelmChart{InstallValues: "a: {{ .nuon.nothing }}"}, want: "helm_values of the install:1:7: .nuon.nothing"},
		{name: "what is not there", spec: jobspec.HelmChart{Values: map[string]string{"a": "{{ .nuon.nothing }}"}}, want: "values.a:1:4: .nuon.nothing"},
		{
			name: "what is nearly there", want: "components/web.values.yaml:2:7: .nuon.nam:",
			spec: jobspec.HelmChart{ValuesFiles: []string{"a: 1\nb: {{ .nuon.nam }}\n"}, ValuesFileNames: []string{"components/web.values.yaml"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := renderValues(valuesJob(&tc.spec), &tc.spec)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not contain %q", err, tc.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the value is in the error: %q", err)
			}
		})
	}
}
