package appconfig

import (
	"maps"
	"slices"
)

// Branch is branch.toml or one file under branches/: a branch of a repository
// that the app is read from, and how its changes roll out.
type Branch struct {
	At Place `toml:"-" json:"at" digest:"-"`

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
	// When its turn is; each number once.
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
	c.oneSource(b.At, b.SourceFile, sourcesGiven(b.PublicRepo, b.ConnectedRepo, nil), "[public_repo] or [connected_repo]")
	if b.InstallsPublicRepo != nil && b.InstallsConnectedRepo != nil {
		c.add(Error, CodeExclusive, b.At.key("installs_connected_repo"), "only one of installs_public_repo and installs_connected_repo is possible")
	}
	for i := range b.InstallGroups {
		g := &b.InstallGroups[i]
		at := b.At.key("install_groups").item(i)
		given := 0
		for _, is := range []bool{len(g.LabelSelector) > 0, len(g.InstallIDs) > 0, len(g.InstallNames) > 0} {
			if is {
				given++
			}
		}
		switch {
		case given == 0:
			c.add(Error, CodeMissing, at, "install group %q needs one of label_selector, install_ids and install_names", g.Name)
		case given > 1:
			c.add(Error, CodeExclusive, at, "install group %q can have only one of label_selector, install_ids and install_names", g.Name)
		}
		for _, other := range b.InstallGroups[:i] {
			if other.Name == g.Name && g.Name != "" {
				c.add(Error, CodeDuplicate, at.key("name"), "branch %q has two install groups called %q", b.Name, g.Name)
			}
			if other.Order == g.Order {
				c.add(Error, CodeDuplicate, at.key("order"), "install group %q has the order %d of group %q", g.Name, g.Order, other.Name)
			}
		}
	}
}

// repo returns the repository that the branch is of, "" when none is given.
func (b *Branch) repo() string {
	switch {
	case b.PublicRepo != nil:
		return b.PublicRepo.Repo
	case b.ConnectedRepo != nil:
		return b.ConnectedRepo.Repo
	}
	return ""
}

// branches checks the rules between branches: one repository, and no two groups
// with the same selector.
func (v *validator) branches() {
	once := v.once("branch")
	type selector struct {
		labels map[string]string
		at     Place
	}
	var selectors []selector
	for i := range v.app.Branches {
		b := &v.app.Branches[i]
		once(b.At, b.Name)
		if first := v.app.Branches[0].repo(); b.repo() != "" && first != "" && b.repo() != first {
			v.add(Error, CodeValue, b.At, "branch %q is of repository %q, and branch %q of %q; all branches of an app are of one", b.Name, b.repo(), v.app.Branches[0].Name, first)
		}
		for j := range b.InstallGroups {
			g := &b.InstallGroups[j]
			at := b.At.key("install_groups").item(j).key("label_selector")
			if len(g.LabelSelector) == 0 {
				continue
			}
			same := slices.IndexFunc(selectors, func(s selector) bool { return maps.Equal(s.labels, g.LabelSelector) })
			if same >= 0 {
				v.add(Error, CodeDuplicate, at, "the selector of install group %q is already that at %s", g.Name, v.origin.where(selectors[same].at))
				continue
			}
			selectors = append(selectors, selector{g.LabelSelector, at})
		}
	}
}
