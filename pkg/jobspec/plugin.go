package jobspec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/plugin/grant"
)

// PluginScript is a plugin as a release brings it and a runner accepts it, next to
// the scripts: code of the vendor's, named by the digest of its artifact, with the
// key that must have signed it and what it may do. Whatever of this changes asks the
// customer again.
func PluginScript(component string, p Plugin, a Artifact) Script {
	may := []string{"uses no network", "does not see the install's directory"}
	switch {
	case p.Network:
		may[0] = pluginMay["network"]
	case len(p.Hosts) > 0:
		may[0] = "uses no network but that of the hosts below, through the runner"
	}
	if p.InstallDir {
		may[1] = pluginMay["install_dir"]
	}
	if p.State {
		may = append(may, pluginMay["state"])
	}
	for _, text := range p.Hosts {
		may = append(may, mayReach+canonicalHost(text))
	}
	for _, text := range p.Paths {
		may = append(may, mayWithPath(text))
	}
	for _, text := range p.Roles {
		may = append(may, mayWithRole+canonicalRole(text))
	}
	return Script{Plugin: p.Type, Action: Action{
		Name: "plugin " + p.Type + " of component " + component,
		Steps: []ActionStep{{
			Name: "plugin", Artifact: &a,
			Command: "# The plugin " + p.Type + " plans and applies component " + component + ".\n# It is signed with the key " + p.Signer +
				".\n# It " + strings.Join(may, ".\n# It ") + ".",
		}},
	}}
}

// pluginMay is what the text of a PluginScript says of a permission that it has. The text
// is a part of what is accepted: it can only be added to.
var pluginMay = map[string]string{
	"network":     "may use the network",
	"install_dir": "reads and writes the install's directory",
	"state":       "keeps a state of its own, sealed, between its jobs",
}

// mayReach is the same for each host.
const mayReach = "may reach the host "

// canonicalHost is the one text of a host, on one line whatever it is. A runner refuses a
// plugin that is granted what is no host.
func canonicalHost(text string) string {
	h, err := grant.ParseHost(text)
	if err != nil {
		return strconv.Quote(text)
	}
	return h.String()
}

// Texts of what a plugin may with one path, which stands last.
const (
	mayRead  = "may read the runner's machine at "
	mayWrite = "may read and write the runner's machine at "
)

// mayWithPath is on one line, as canonicalHost is.
func mayWithPath(text string) string {
	switch p, err := grant.ParsePath(text); {
	case err != nil:
		return mayWrite + strconv.Quote(text)
	case p.Write:
		return mayWrite + p.Name
	default:
		return mayRead + p.Name
	}
}

// mayWithRole is the same for each role.
const mayWithRole = "runs only while the customer has this role switched on: "

// canonicalRole is on one line, as canonicalHost is.
func canonicalRole(text string) string {
	name, err := grant.ParseRole(text)
	if err != nil {
		return strconv.Quote(text)
	}
	return name
}

// What names of the permission for one host, path or role begin with.
const (
	hostPermission = "host "
	pathPermission = "path "
	rolePermission = "role "
	readOnly       = ":ro"
)

// PluginPermissions names what the plugin of a PluginScript may, sorted. A script whose text
// is not known may nothing that is known of.
func (s Script) PluginPermissions() []string {
	if len(s.Action.Steps) != 1 {
		return nil
	}
	var names []string
	for line := range strings.SplitSeq(s.Action.Steps[0].Command, "\n") {
		line, is := strings.CutPrefix(line, "# It ")
		line, ends := strings.CutSuffix(line, ".")
		if !is || !ends {
			continue
		}
		for name, text := range pluginMay {
			if line == text {
				names = append(names, name)
			}
		}
		if host, is := strings.CutPrefix(line, mayReach); is {
			names = append(names, hostPermission+host)
		}
		if role, is := strings.CutPrefix(line, mayWithRole); is {
			names = append(names, rolePermission+role)
		}
		if path, is := strings.CutPrefix(line, mayRead); is {
			names = append(names, pathPermission+path+readOnly)
		}
		if path, is := strings.CutPrefix(line, mayWrite); is {
			names = append(names, pathPermission+path)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// PermissionCovered says whether who had the permissions had a permission too, by one that
// gives more.
func PermissionCovered(had []string, name string) bool {
	if slices.Contains(had, name) {
		return true
	}
	if path, is := strings.CutSuffix(name, readOnly); is && strings.HasPrefix(name, pathPermission) {
		return slices.Contains(had, path)
	}
	text, isHost := strings.CutPrefix(name, hostPermission)
	if !isHost {
		return false
	}
	if slices.Contains(had, "network") {
		return true
	}
	host, err := grant.ParseHost(text)
	return err == nil && slices.ContainsFunc(had, func(before string) bool {
		text, isHost := strings.CutPrefix(before, hostPermission)
		wider, err := grant.ParseHost(text)
		return isHost && err == nil && wider.Covers(host)
	})
}
