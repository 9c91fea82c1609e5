package appconfig

import (
	"net/url"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// HelmChart holds the keys of a component of type helm_chart, in addition to
// those of every component. The source is the chart's directory, or a chart
// repository; a chart's dependencies are packed with it.
type HelmChart struct {
	// The name of the chart, and of the Helm release: at most 53 characters.
	ChartName string `toml:"chart_name" json:"chart_name" digest:"deploy" rule:"required"`
	// Where the release goes; by default a namespace named after the install's id.
	Namespace string `toml:"namespace" json:"namespace,omitempty" digest:"deploy" template:"true"`
	// Makes the namespace when it is not there.
	CreateNamespace *bool `toml:"create_namespace" json:"create_namespace,omitempty" digest:"deploy" default:"true"`
	// Where Helm keeps the release; by default as helm_driver in runner.toml says, else "secret", where `helm list` looks. With "nuon" the control plane keeps it, sealed with the install's key, and the cluster has no record of it. When this changes, the next deploy moves the release with its history.
	StorageDriver string `toml:"storage_driver" json:"storage_driver,omitempty" digest:"deploy" enum:"configmap,secret,nuon"`
	// Adopts objects that are there already.
	TakeOwnership bool `toml:"take_ownership" json:"take_ownership,omitempty" digest:"deploy" default:"false"`
	// What is done with the CRDs in the chart's crds/. "install" makes those that are not there at the first deploy, as Helm does; the plan names those that differ. "upgrade" makes them what the chart says at each deploy, each a change of the plan. "skip" leaves them out.
	CRDs string `toml:"crds" json:"crds,omitempty" digest:"deploy" enum:"install,upgrade,skip" default:"install"`
	// How many revisions of the release are kept, at least 1; the deployed one stays until the next one is.
	HistoryLimit int `toml:"history_limit" json:"history_limit,omitempty" digest:"deploy" default:"10"`
	// Puts back what an upgrade changed when it fails, and records that as a revision. Hooks do not run for it and CRDs stay as they are then; what a first install made stays.
	Atomic bool `toml:"atomic" json:"atomic,omitempty" digest:"deploy" default:"false"`
	// Paths and types as `helm --set` reads them. They win over values files.
	Values map[string]string `toml:"values" json:"values,omitempty" digest:"deploy" template:"true"`
	// Files of values; later files win.
	ValuesFiles []ValuesFile `toml:"values_file" json:"values_file,omitempty" digest:"deploy"`
	// A chart of a chart repository, instead of a directory.
	HelmRepo *HelmRepo `toml:"helm_repo" json:"helm_repo,omitempty" digest:"build"`
}

// ValuesFile is one values file; later files win over earlier ones, and values
// win over all of them.
type ValuesFile struct {
	// The file's text, or its path. The older names `path` and `source` always name a file.
	Contents place.Text `toml:"contents" alias:"path,source" json:"contents" rule:"required" template:"true"`
}

// HelmRepo is a chart in a chart repository. Each sync looks up what its version
// names now, and the build pins that by digest.
type HelmRepo struct {
	// The repository: an https:// address, or oci:// for a registry.
	RepoURL string `toml:"repo_url" json:"repo_url" rule:"required"`
	// The chart's name in it.
	Chart string `toml:"chart" json:"chart" rule:"required"`
	// A version, or a range such as "^1.4"; by default the newest that is no prerelease.
	Version string `toml:"version" json:"version,omitempty"`
}

// The drivers that keep Helm's releases in the cluster.
const (
	StorageConfigMap = "configmap"
	StorageSecret    = "secret"
	StorageNuon      = "nuon" // in the control plane
)

// CRDsInstall is what is done with a chart's CRDs by default.
const CRDsInstall = "install"

// InNewNamespace tells whether the namespace is made when it is not there, which
// is so unless create_namespace says otherwise.
func (h *HelmChart) InNewNamespace() bool { return h.CreateNamespace == nil || *h.CreateNamespace }

// releaseName is what Helm accepts, at most 53 characters.
var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

const maxReleaseName = 53

func (h *HelmChart) check(ch *checker, c *Component) {
	if h.HelmRepo == nil {
		ch.source(c.At, c.SourceFile, c.sources())
	} else {
		ch.oneSource(c.At, c.SourceFile, append(c.sources().given(), "helm_repo"), "")
		h.HelmRepo.check(ch, c.At.Below("helm_repo"))
	}
	if at := c.At.Below("history_limit"); h.HistoryLimit < 0 || h.HistoryLimit == 0 && ch.isWritten(at) {
		ch.Add(place.Error, place.CodeValue, at, "history_limit must be at least 1")
	}
	for path := range h.Values {
		if problem := setPathProblem(path); problem != "" {
			ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, c.At.Below("values").Below(path), "%q is no path of one value: %s", path, problem).
				WithRemedy(`write it as for helm --set, such as "image.tag" or "hosts[0].name"`))
		}
	}
	if h.ChartName != "" && (len(h.ChartName) > maxReleaseName || !releaseName.MatchString(h.ChartName)) {
		ch.Add(place.Error, place.CodeValue, c.At.Below("chart_name"),
			"chart_name %q is the name of the release, which has lower-case letters, digits, \"-\" and \".\" (at most %d)", h.ChartName, maxReleaseName)
	}
}

// chartName is a name in a chart repository, and one path element.
var chartName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (r *HelmRepo) check(ch *checker, at place.Place) {
	u, err := url.Parse(r.RepoURL)
	if known := err == nil && slices.Contains([]string{"https", "http", "oci", "file"}, u.Scheme); r.RepoURL != "" && !known {
		ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, at.Below("repo_url"), "repo_url %q is not the address of a chart repository", fetch.WithoutCredentials(r.RepoURL)).
			WithRemedy(`write an https:// address, or oci:// with host and path of a registry`))
	}
	if r.Chart != "" && !chartName.MatchString(r.Chart) {
		ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, at.Below("chart"), "chart %q is not the name of a chart", r.Chart).
			WithRemedy(`write the name alone, such as "redis"; the path of a registry belongs to repo_url`))
	}
	if _, err := semver.NewConstraint(r.Version); r.Version != "" && err != nil {
		ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, at.Below("version"), "version %q is neither a version nor a range of versions", r.Version).
			WithRemedy(`write a version, or a range such as "^1.4" or ">= 1.4, < 2"`))
	}
}
