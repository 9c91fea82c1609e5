package appconfig

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/bind"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/plugin/grant"
)

// notPlugins are names of jobs that are no component types: no plugin can have one.
var notPlugins = []string{"action", "release", "rehearsal", "scripts", "plugin"}

// signerBytes is the size of an Ed25519 public key.
const signerBytes = 32

// checkPlugin checks a component whose type is a plugin's.
func (c *Component) checkPlugin(ch *checker) {
	if slices.Contains(notPlugins, string(c.Type)) {
		ch.Add(place.Error, place.CodeValue, c.At.Below("type"), "no plugin can be called %q", c.Type)
	}
	remedy := fmt.Sprintf("name the directory of plugin %q in [berth] local_source or public_repo, or its address in [berth] oci_source, and in [berth.plugin] the key that signed it; or correct the type", c.Type)
	if c.Berth == nil || c.Berth.Plugin == nil {
		ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeMissing, c.At.Below("type"),
			"component type %q is none of the format's own, and there is no [berth.plugin] that says whose plugin it is", c.Type).WithRemedy("%s", remedy))
		return
	}
	ch.source(c.At, c.SourceFile, c.sources())
	if _, _, ok := splitOCI(c.Berth.OCISource); c.Berth.OCISource != "" && !ok {
		ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, c.At.Below("berth.oci_source"), "oci_source is not the address of an artifact").
			WithRemedy("write oci://HOST/PATH:TAG or oci://HOST/PATH@sha256:DIGEST"))
	}
	ch.hosts(c.At.Below("berth.plugin"), *c.Berth.Plugin)
	if _, err := grant.ParseRoles(c.Berth.Plugin.Roles); err != nil {
		ch.Add(place.Error, place.CodeValue, c.At.Below("berth.plugin.roles"), "%v", err)
	}
	ch.paths(c.At.Below("berth.plugin.paths"), c.Berth.Plugin.Paths)
	key, err := base64.StdEncoding.DecodeString(c.Berth.Plugin.Signer)
	if c.Berth.Plugin.Signer != "" && (err != nil || len(key) != signerBytes) {
		ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, c.At.Below("berth.plugin.signer"), "signer is not a public key: %d bytes in base64", signerBytes).
			WithRemedy("`berth plugins sign` prints the key"))
	}
}

// hosts checks what of the network a plugin is granted.
func (c *checker) hosts(at place.Place, g PluginGrant) {
	var before grant.Hosts
	for i, text := range g.Hosts {
		h, err := grant.ParseHost(text)
		switch {
		case err != nil:
			c.Add(place.Error, place.CodeValue, at.Below("hosts").Item(i), "%v", err)
		case slices.Contains(before, h):
			c.Add(place.Error, place.CodeDuplicate, at.Below("hosts").Item(i), "%q is said twice", text)
		}
		before = append(before, h)
	}
	switch {
	case g.Network && len(g.Hosts) > 0:
		c.Add(place.Error, place.CodeExclusive, at.Below("network"), "network gives every host: leave one of network and hosts out")
	case len(g.Hosts) > grant.MaxHosts:
		c.Add(place.Error, place.CodeValue, at.Below("hosts"), "there are %d hosts, %d is the most: who needs so many needs the network", len(g.Hosts), grant.MaxHosts)
	}
}

// paths checks what of the runner's machine a plugin is granted.
func (c *checker) paths(at place.Place, texts []string) {
	var before []grant.Path
	for i, text := range texts {
		p, err := grant.ParsePath(text)
		if err != nil {
			c.Add(place.Error, place.CodeValue, at.Item(i), "%v", err)
			continue
		}
		if j := slices.IndexFunc(before, func(other grant.Path) bool { return other.Meets(p.Name) }); j >= 0 {
			c.Add(place.Error, place.CodeDuplicate, at.Item(i), "%q meets %s", text, before[j])
		}
		before = append(before, p)
	}
	if len(texts) > grant.MaxPaths {
		c.Add(place.Error, place.CodeValue, at, "there are %d paths, %d is the most", len(texts), grant.MaxPaths)
	}
}

// noPlugin reports a grant that nobody gets.
func (c *checker) noPlugin(block place.Place, ext *BlockExtension, isPlugin bool) {
	if ext != nil && ext.OCISource != "" && !isPlugin {
		c.Add(place.Error, place.CodeValue, block.Below("berth.oci_source"), "oci_source is for plugins: the type is one of the format's own")
	}
	if ext != nil && ext.Plugin != nil && !isPlugin {
		c.Add(place.Warning, place.CodeValue, block.Below("berth.plugin"), "[berth.plugin] does nothing: the type is one of the format's own, and needs no plugin")
	}
}

// CommonKeys are the keys that every component has, whatever its type: no plugin
// gets one of them.
func CommonKeys() []string {
	return slices.Sorted(maps.Keys(bind.Keys(reflect.TypeFor[Component]())))
}
