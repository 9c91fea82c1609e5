package appconfig

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Branch is branch.toml or one file under branches/: a branch of a repository
// that the app is read from, and how its changes roll out.
type Branch struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// Unique in the app.
	Name string `toml:"name" json:"name" rule:"required"`
	// A repository that everybody can read; one of these two must be given.
	PublicRepo *Repo `toml:"public_repo" json:"public_repo,omitempty"`
	// A repository that the org's own connection reads. All branches of an app are of one repository.
	ConnectedRepo *Repo `toml:"connected_repo" json:"connected_repo,omitempty"`
	// Which installs get a change, group after group.
	InstallGroups []InstallGroup `toml:"install_groups" json:"install_groups,omitempty"`
	// The directory that holds the files of installs.
	InstallsDirectory string `toml:"installs_directory" json:"installs_directory,omitempty" default:"installs"`
	// A public repository of that directory; the branch's own by default.
	InstallsPublicRepo *Repo `toml:"installs_public_repo" json:"installs_public_repo,omitempty"`
	// A repository of that directory, read by the org's own connection.
	InstallsConnectedRepo *Repo `toml:"installs_connected_repo" json:"installs_connected_repo,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// InstallGroup is one group of a branch, in order of Order. Exactly one key says
// which installs are in it.
type InstallGroup struct {
	// Unique in the branch.
	Name string `toml:"name" json:"name" rule:"required"`
	// Its position in the order; each number once.
	Order int `toml:"order" json:"order" default:"0"`
	// Installs with all of these labels.
	LabelSelector map[string]string `toml:"label_selector" json:"label_selector,omitempty"`
	// Installs by id.
	InstallIDs []string `toml:"install_ids" json:"install_ids,omitempty"`
	// Installs by name.
	InstallNames []string `toml:"install_names" json:"install_names,omitempty"`
	// Plans proposed changes against these installs.
	UseForPreviews bool `toml:"use_for_previews" json:"use_for_previews,omitempty" default:"false"`
}

func (b *Branch) check(c *checker) {
	c.oneSource(b.At, b.SourceFile, sources{public: b.PublicRepo, connected: b.ConnectedRepo}.given(), "[public_repo] or [connected_repo]")
	if b.InstallsPublicRepo != nil && b.InstallsConnectedRepo != nil {
		c.Add(place.Error, place.CodeExclusive, b.At.Below("installs_connected_repo"), "only one of installs_public_repo and installs_connected_repo is possible")
	}
	for i := range b.InstallGroups {
		g := &b.InstallGroups[i]
		at := b.At.Below("install_groups").Item(i)
		given := 0
		for _, is := range []bool{len(g.LabelSelector) > 0, len(g.InstallIDs) > 0, len(g.InstallNames) > 0} {
			if is {
				given++
			}
		}
		switch {
		case given == 0 && c.Misspelt(at, "label_selector", "install_ids", "install_names"):
		case given == 0:
			c.Add(place.Error, place.CodeMissing, at, "install group %q needs one of label_selector, install_ids and install_names", g.Name)
		case given > 1:
			c.Add(place.Error, place.CodeExclusive, at, "install group %q can have only one of label_selector, install_ids and install_names", g.Name)
		}
		for _, other := range b.InstallGroups[:i] {
			if other.Name == g.Name && g.Name != "" {
				c.Add(place.Error, place.CodeDuplicate, at.Below("name"), "branch %q has two install groups called %q", b.Name, g.Name)
			}
			if other.Order == g.Order {
				c.Add(place.Error, place.CodeDuplicate, at.Below("order"), "install group %q has the order %d of group %q", g.Name, g.Order, other.Name)
			}
		}
	}
}

// Repository returns the repository that the branch is of, "" when none is given.
func (b *Branch) Repository() string {
	switch {
	case b.PublicRepo != nil:
		return b.PublicRepo.Repo
	case b.ConnectedRepo != nil:
		return b.ConnectedRepo.Repo
	}
	return ""
}
