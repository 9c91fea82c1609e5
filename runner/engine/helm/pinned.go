package helm

import (
	"errors"
	"io/fs"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// mode is what an apply does with a release.
type mode string

const (
	modeInstall   mode = "install"
	modeUpgrade   mode = "upgrade"
	modeUninstall mode = "uninstall"
)

const (
	pinnedFile   = "helm.json"
	pinnedFormat = 1
)

// pinned is pinned/helm.json: all that an apply needs apart from the cluster.
type pinned struct {
	Format int  `json:"format"`
	Mode   mode `json:"mode"`
	inputs
	// Chart, Sources, CRDs and AllValues make the literal chart.
	Chart     chart.Metadata    `json:"chart"`
	Sources   map[string]string `json:"sources,omitempty"`
	CRDs      []crd             `json:"crds,omitempty"`
	AllValues map[string]any    `json:"all_values,omitempty"`
	// Manifest is what the literal chart must render to.
	Manifest string `json:"manifest,omitempty"`
	// Hooks are those of the release, for a plan that follows.
	Hooks []hook `json:"hooks,omitempty"`
	// Live is the revision that was deployed last and LastRevision the highest,
	// with its status: an apply finds the same or is stale.
	Live         int    `json:"live_revision"`
	LastRevision int    `json:"last_revision"`
	LastStatus   string `json:"last_status,omitempty"`
	// MovesFrom is the storage driver that the release leaves for that of the inputs.
	MovesFrom string `json:"moves_from,omitempty"`
	// Changes are of the namespace, of CRDs and of the release's objects.
	Changes []kube.Pinned `json:"changes"`
}

// readPinned reads what a plan pinned, in in/pinned or in/previous.
func readPinned(j *job.Job, dir string) (pinned, error) {
	var p pinned
	err := job.ReadJSON(j.In(dir, pinnedFile), &p)
	return p, err
}

// previous are the changes of the plan that this one follows, none when there
// is none or when it was for something else.
func previous(j *job.Job, in inputs, m mode) (p pinned, ok bool) {
	p, err := readPinned(j, "previous")
	if errors.Is(err, fs.ErrNotExist) {
		return p, false
	}
	if err != nil || p.Format != pinnedFormat {
		j.Logf("what the change before this one pinned cannot be read; planning without it")
		return p, false
	}
	return p, p.Mode == m && p.ReleaseName == in.ReleaseName && p.Namespace == in.Namespace
}

// canonical is what people approve, in bytes that are the same whenever the same
// is done. It holds values in clear.
type canonical struct {
	Mode            mode                         `json:"mode"`
	Release         string                       `json:"release"`
	Namespace       string                       `json:"namespace"`
	CreateNamespace bool                         `json:"create_namespace"`
	StorageDriver   string                       `json:"storage_driver"`
	MovesFrom       string                       `json:"moves_from,omitempty"`
	TakeOwnership   bool                         `json:"take_ownership"`
	CRDMode         string                       `json:"crd_mode,omitempty"`
	MaxHistory      int                          `json:"max_history,omitempty"`
	Atomic          bool                         `json:"atomic,omitempty"`
	LiveRevision    int                          `json:"live_revision"`
	Chart           canonicalChart               `json:"chart"`
	Values          map[string]any               `json:"values"`
	Objects         []*unstructured.Unstructured `json:"objects"`
	Hooks           []hook                       `json:"hooks"`
	CRDs            []crd                        `json:"crds"`
	Changes         []kube.Change                `json:"changes"`
}

type canonicalChart struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"app_version,omitempty"`
}
