package appconfig

import "regexp"

// HelmChart holds the keys of a component of type helm_chart.
type HelmChart struct {
	// ChartName is also the name of the Helm release.
	ChartName string `toml:"chart_name" json:"chart_name" digest:"deploy" rule:"required"`
	// Namespace is the install's id when it is left out.
	Namespace       string            `toml:"namespace" json:"namespace,omitempty" digest:"deploy" template:"true"`
	CreateNamespace *bool             `toml:"create_namespace" json:"create_namespace,omitempty" digest:"deploy"`
	StorageDriver   string            `toml:"storage_driver" json:"storage_driver,omitempty" digest:"deploy"`
	TakeOwnership   bool              `toml:"take_ownership" json:"take_ownership,omitempty" digest:"deploy"`
	Values          map[string]string `toml:"values" json:"values,omitempty" digest:"deploy" template:"true"`
	ValuesFiles     []ValuesFile      `toml:"values_file" json:"values_file,omitempty" digest:"deploy"`
	HelmRepo        *HelmRepo         `toml:"helm_repo" json:"helm_repo,omitempty" digest:"build"`
}

// ValuesFile is one values file; later files win over earlier ones, and values
// win over all of them.
type ValuesFile struct {
	Contents Text `toml:"contents" json:"contents" rule:"required" template:"true"`
}

// HelmRepo is a chart in a chart repository.
type HelmRepo struct {
	RepoURL string `toml:"repo_url" json:"repo_url" rule:"required"`
	Chart   string `toml:"chart" json:"chart" rule:"required"`
	Version string `toml:"version" json:"version,omitempty"`
}

// The drivers that keep Helm's releases in the cluster.
const (
	StorageConfigMap = "configmap"
	StorageSecret    = "secret"
)

// InNewNamespace tells whether the namespace is made when it is not there, which
// is so unless create_namespace says otherwise.
func (h *HelmChart) InNewNamespace() bool { return h.CreateNamespace == nil || *h.CreateNamespace }

// releaseName is what Helm accepts, at most 53 characters.
var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

const maxReleaseName = 53

func (h *HelmChart) check(ch *checker, c *Component) {
	if h.HelmRepo != nil {
		ch.unsupported(c.At.key("helm_repo"), "a chart of a chart repository is")
	} else {
		ch.source(c.At, c.PublicRepo, c.ConnectedRepo, c.Berth)
	}
	if h.ChartName != "" && (len(h.ChartName) > maxReleaseName || !releaseName.MatchString(h.ChartName)) {
		ch.add(Error, CodeValue, c.At.key("chart_name"),
			"chart_name %q is the name of the release, which has lower-case letters, digits, \"-\" and \".\" (at most %d)", h.ChartName, maxReleaseName)
	}
	ch.oneOf(c.At.key("storage_driver"), h.StorageDriver, StorageConfigMap, StorageSecret)
}
