package helm

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// namespaceName is what Kubernetes accepts as the name of a namespace.
var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// inputs are what of an order is rendered; they are out/inputs.json.
type inputs struct {
	ReleaseName     string         `json:"release_name"`
	Namespace       string         `json:"namespace"`
	CreateNamespace bool           `json:"create_namespace"`
	StorageDriver   string         `json:"storage_driver"`
	TakeOwnership   bool           `json:"take_ownership"`
	CRDMode         string         `json:"crd_mode,omitempty"` // "" installs them
	MaxHistory      int            `json:"max_history,omitempty"`
	Atomic          bool           `json:"atomic,omitempty"`
	Values          map[string]any `json:"values"`
}

// renderInputs renders the templates of an order; values are for what makes a
// release, not for a teardown or a look at it.
func renderInputs(j *job.Job, withValues bool) (inputs, error) {
	spec := j.Spec.HelmChart
	in := inputs{
		ReleaseName: spec.ReleaseName, CreateNamespace: spec.CreateNamespace,
		StorageDriver: spec.StorageDriver, TakeOwnership: spec.TakeOwnership,
		CRDMode: spec.CRDs, MaxHistory: spec.MaxHistory, Atomic: spec.Atomic,
	}
	if in.StorageDriver == "" {
		in.StorageDriver = driverConfigMap
	}
	if err := chartutil.ValidateReleaseName(in.ReleaseName); err != nil {
		return in, job.Refusef("correct chart_name", "%s: %q cannot be the name of a release: %v", j.Subject(), in.ReleaseName, err)
	}
	namespace, err := j.Render("namespace", spec.Namespace)
	if err != nil {
		return in, err
	}
	in.Namespace = kube.NamespaceOf(j.Spec.InstallID, namespace)
	if !namespaceName.MatchString(in.Namespace) {
		return in, job.Wrongf(`write a name of lower-case letters, digits and "-"; without one it is the install's id`,
			"%s: %q cannot be the name of a namespace", j.Subject(), in.Namespace)
	}
	if withValues {
		in.Values, err = renderValues(j, spec)
	}
	return in, err
}

// renderValues merges values files, later ones over earlier ones, values as
// `helm --set` takes them over these, and the install's own over all. Errors name
// places, never values.
func renderValues(j *job.Job, spec *jobspec.HelmChart) (map[string]any, error) {
	values := map[string]any{}
	for i, contents := range spec.ValuesFiles {
		place := fmt.Sprintf("values_file %d", i+1)
		file, err := renderFile(j, place, job.NameOf(spec.ValuesFileNames, i), contents)
		if err != nil {
			return nil, err
		}
		values = merge(values, file)
	}
	for _, path := range slices.Sorted(maps.Keys(spec.Values)) {
		place := "values." + path
		value, err := j.Render(place, spec.Values[path])
		if err != nil {
			return nil, err
		}
		if err := set(values, path, value); err != nil {
			return nil, job.Wrongf(`write a path as helm --set takes it, such as image.tag or "hosts[0].name"`, "%s: %s: %v", j.Subject(), place, err)
		}
	}
	if spec.InstallValues == "" {
		return values, nil
	}
	const place = "helm_values of the install"
	own, err := renderFile(j, place, place, spec.InstallValues)
	return merge(values, own), err
}

// renderFile renders a text of YAML, which stands in name, and reads it.
func renderFile(j *job.Job, place, name, contents string) (map[string]any, error) {
	text, err := j.RenderFile(place, name, contents)
	if err != nil {
		return nil, err
	}
	file := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return nil, job.Wrongf("correct it, also where it has templates in it", "%s: %s is no YAML map: %s", j.Subject(), place, yamlError(err))
	}
	return file, nil
}

// merge is the merge of values files by Helm: maps are merged, all else of over
// replaces what is in base.
func merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for key, v := range over {
		if m, ok := v.(map[string]any); ok {
			if below, ok := out[key].(map[string]any); ok {
				out[key] = merge(below, m)
				continue
			}
		}
		out[key] = v
	}
	return out
}

// yamlError is the error of the YAML parser without the text that it quotes.
func yamlError(err error) string {
	text, _, _ := strings.Cut(err.Error(), "`")
	return strings.TrimSpace(strings.TrimPrefix(text, "error converting YAML to JSON: "))
}
