package check

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/plugin"
)

// PluginOf reads the manifest of a component's plugin, where its directory can be
// read: in the app folder, or where a source of git is mapped to. found is false for
// a component without a plugin and for a directory that is not here.
func PluginOf(fsys fs.FS, opts appconfig.LoadOptions, c *appconfig.Component) (m plugin.Manifest, dir fs.FS, found bool, err error) {
	src, given := c.Source()
	if c.Plugin == nil || !given {
		return m, nil, false, nil
	}
	root, name := fsys, path.Clean(src.Directory)
	switch {
	case src.Kind == appconfig.SourceGit && opts.Mapped != nil:
		var here bool
		if root, name, here = opts.Mapped(src); !here {
			return m, nil, false, nil
		}
	case src.Kind != appconfig.SourceLocal:
		return m, nil, false, nil
	}
	if info, err := fs.Stat(root, name); err != nil || !info.IsDir() {
		return m, nil, false, nil //nolint:nilerr // the check of sources reports it
	}
	if dir, err = fs.Sub(root, name); err != nil {
		return m, nil, false, err
	}
	m, err = plugin.ReadManifest(dir)
	return m, dir, true, err
}

// Plugins checks the components whose types are plugins' against the plugins
// themselves: the type, the permissions and the config. What is a template fits
// everything; a runner looks again when it is rendered. A signature that does not fit
// is a warning, since the plugin may be signed after this.
func Plugins(fsys fs.FS, opts appconfig.LoadOptions, app *appconfig.App) []place.Diagnostic {
	if opts.SkipSources {
		return nil
	}
	p := pluginCheck{Report: place.Report{Origin: &app.Origin}}
	for i := range app.Components {
		c := &app.Components[i]
		if c.Berth == nil || c.Berth.Plugin == nil {
			continue // said when the block was read
		}
		m, dir, found, err := PluginOf(fsys, opts, c)
		switch {
		case !found:
		case err != nil:
			p.Add(place.Error, place.CodeValue, sourceOf(c), "the plugin cannot be used: %s", oneLine(err))
		default:
			p.component(c, m, dir)
		}
	}
	return p.Diags
}

type pluginCheck struct{ place.Report }

// sourceOf is the key that names the plugin's directory.
func sourceOf(c *appconfig.Component) place.Place {
	switch {
	case c.PublicRepo != nil:
		return c.At.Below("public_repo")
	case c.ConnectedRepo != nil:
		return c.At.Below("connected_repo")
	}
	if c.Berth != nil && c.Berth.OCISource != "" {
		return c.At.Below("berth").Below("oci_source")
	}
	return c.At.Below("berth").Below("local_source")
}

func (p *pluginCheck) component(c *appconfig.Component, m plugin.Manifest, dir fs.FS) {
	if m.Type != string(c.Type) {
		p.Add(place.Error, place.CodeValue, c.At.Below("type"), "the plugin deploys components of type %q, this one is of type %q", m.Type, c.Type)
		return
	}
	grant := c.Berth.Plugin
	granted := plugin.Permissions{Network: grant.Network, Hosts: grant.Hosts, InstallDir: grant.InstallDir, Paths: grant.Paths, Roles: grant.Roles, State: grant.State}
	for _, wish := range m.Permissions.Without(granted) {
		p.Diags = append(p.Diags, p.At(place.Error, place.CodeValue, c.At.Below("berth.plugin").Below(wish.Key), "plugin %s asks for %s, which the component does not grant", m.Type, wish).
			WithRemedy("write %s in [berth.plugin], next to what it grants already, or use another version", wish.Remedy()))
	}
	if _, err := plugin.Verify(grant.Signer, dir); err != nil && grant.Signer != "" {
		p.Diags = append(p.Diags, p.At(place.Warning, place.CodeValue, c.At.Below("berth.plugin.signer"), "runners will refuse plugin %s: %s", m.Type, oneLine(err)).
			WithRemedy("sign it again with `berth plugins sign`, and name the key that it prints"))
	}
	p.config(c, m)
}

// config checks the component's own keys.
func (p *pluginCheck) config(c *appconfig.Component, m plugin.Manifest) {
	for _, name := range appconfig.CommonKeys() {
		if _, taken := m.Config.Properties[name]; taken {
			p.Add(place.Error, place.CodeValue, sourceOf(c), "plugin %s has a key %q, which is one of every component's: the plugin would never get it", m.Type, name)
		}
	}
	_, problems := m.Config.Complete(c.Plugin, interpolate.IsTemplate)
	for _, problem := range problems {
		at, top := c.At.Below(problem.Path), topOf(problem.Path)
		if _, written := c.Plugin[top]; !written {
			at = c.At.Below("type") // the key is missing
		}
		d := p.At(place.Error, place.CodeValue, at, "%s", problem)
		if problem.Unknown && top == problem.Path {
			d = p.Suggest(d, top, slices.Sorted(maps.Keys(m.Config.Properties)))
		}
		p.Diags = append(p.Diags, d)
	}
	for _, name := range m.Config.Secrets() {
		if text, ok := c.Plugin[name].(string); ok && text != "" && !interpolate.IsTemplate(text) {
			p.Diags = append(p.Diags, p.At(place.Warning, place.CodeValue, c.At.Below(name), "%s is a secret of plugin %s, and stands in the app folder in clear", name, m.Type).
				WithRemedy("read it from a sensitive input or a secret"))
		}
	}
}

// topOf is the first key of a path, "users" of "users[2].name".
func topOf(path string) string {
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return path
}

// CompletePlugins fills the defaults of plugins in where components leave keys out,
// as a runner does before a plan, and makes texts of numbers. It returns the places
// that it filled. Call it on an app that is only shown: it is no longer what the files
// say.
func CompletePlugins(fsys fs.FS, opts appconfig.LoadOptions, app *appconfig.App) (defaults map[place.Place]bool) {
	defaults = map[place.Place]bool{}
	for i := range app.Components {
		c := &app.Components[i]
		m, _, found, err := PluginOf(fsys, opts, c)
		if !found || err != nil || m.Type != string(c.Type) {
			continue
		}
		whole, _ := m.Config.Complete(c.Plugin, interpolate.IsTemplate)
		for name, value := range whole {
			if _, given := c.Plugin[name]; !given {
				defaults[c.At.Below(name)] = true
			}
			whole[name] = shown(value)
		}
		for name, value := range c.Plugin {
			if _, kept := whole[name]; !kept { // no key of the plugin: that was said
				whole[name] = value
			}
		}
		c.Plugin = whole
	}
	return defaults
}

// shown is a value with texts for all that is neither table nor list.
func shown(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, item := range v {
			out[name] = shown(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = shown(v[i])
		}
		return out
	case string:
		return v
	}
	raw, _ := json.Marshal(value) // it came from TOML or JSON
	return string(raw)
}

// oneLine is an error that may have several parts as one line.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(errors.Join(err).Error(), func(r rune) bool { return r == '\n' }), "; ")
}
