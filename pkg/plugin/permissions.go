package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin/grant"
)

// Permissions are what a plugin gets in addition to its job's directory. Its
// manifest asks for them, the app grants them, and the customer accepts the grant.
// None of them is given by default.
type Permissions struct {
	// Network lets it use the network of the runner's machine.
	Network bool `json:"network,omitempty"`
	// Hosts are what it may reach of the network instead, see grant.Host.
	Hosts []string `json:"hosts,omitempty"`
	// InstallDir shows it the install's durable directory, read and write.
	InstallDir bool `json:"install_dir,omitempty"`
	// Paths are files and directories of the runner's machine, see grant.Path.
	Paths []string `json:"paths,omitempty"`
	// Roles are those of the app without which it does not run: the customer switches
	// them, see package customerrole.
	Roles []string `json:"roles,omitempty"`
	// State keeps a directory of its own between its jobs, sealed (see State).
	State bool `json:"state,omitempty"`
}

// Granted is what the app of a job grants its plugin.
func Granted(p jobspec.Plugin) Permissions {
	return Permissions{Network: p.Network, Hosts: p.Hosts, InstallDir: p.InstallDir, Paths: p.Paths, Roles: p.Roles, State: p.State}
}

// Check says what of the permissions cannot be meant. It is for what is asked for and for
// what is granted.
func (p Permissions) Check() error {
	_, err := grant.ParseHosts(p.Hosts)
	if p.Network && len(p.Hosts) > 0 {
		err = errors.Join(err, errors.New("network gives every host: leave one of network and hosts out"))
	}
	_, noPaths := grant.ParsePaths(p.Paths)
	_, noRoles := grant.ParseRoles(p.Roles)
	return errors.Join(err, noPaths, noRoles)
}

// Wish is one permission: a key that is true, or one item of a key that is a list.
type Wish struct{ Key, Item string }

// String names the permission as people see it: "network", "host api.example.com:443".
func (w Wish) String() string {
	if w.Item == "" {
		return w.Key
	}
	return strings.TrimSuffix(w.Key, "s") + " " + w.Item
}

// Remedy is how an app grants it.
func (w Wish) Remedy() string {
	if w.Item == "" {
		return w.Key + " = true"
	}
	return fmt.Sprintf("%s = [%q]", w.Key, w.Item)
}

// Without lists what p asks for and granted does not give. What is no host, path or role
// is given to nobody.
func (p Permissions) Without(granted Permissions) []Wish {
	var missing []Wish
	if p.Network && !granted.Network {
		missing = append(missing, Wish{Key: "network"})
	}
	if !granted.Network {
		given, _ := grant.ParseHosts(granted.Hosts)
		for _, text := range p.Hosts {
			switch asked, err := grant.ParseHost(text); {
			case err != nil:
				missing = append(missing, Wish{Key: "hosts", Item: text})
			case !given.Cover(asked):
				missing = append(missing, Wish{Key: "hosts", Item: asked.String()})
			}
		}
	}
	if p.InstallDir && !granted.InstallDir {
		missing = append(missing, Wish{Key: "install_dir"})
	}
	given, _ := grant.ParsePaths(granted.Paths)
	for _, text := range p.Paths {
		switch asked, err := grant.ParsePath(text); {
		case err != nil:
			missing = append(missing, Wish{Key: "paths", Item: text})
		case !slices.ContainsFunc(given, func(p grant.Path) bool { return p.Covers(asked) }):
			missing = append(missing, Wish{Key: "paths", Item: asked.String()})
		}
	}
	roles, _ := grant.ParseRoles(granted.Roles)
	for _, text := range p.Roles {
		if name, err := grant.ParseRole(text); err != nil || !slices.Contains(roles, name) {
			missing = append(missing, Wish{Key: "roles", Item: text})
		}
	}
	if p.State && !granted.State {
		missing = append(missing, Wish{Key: "state"})
	}
	return missing
}

// List joins the names of permissions, for people.
func List(wishes []Wish, and string) string {
	names := make([]string, len(wishes))
	for i, w := range wishes {
		names[i] = w.String()
	}
	return strings.Join(names, and)
}

// String names the permissions, "none" without any.
func (p Permissions) String() string {
	if all := p.Without(Permissions{}); len(all) > 0 {
		return List(all, ", ")
	}
	return "none"
}
