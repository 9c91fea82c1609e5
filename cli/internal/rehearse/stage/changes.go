package stage

import (
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// StandIns say why a stand-in takes the place of each part.
type StandIns map[Part]string

// Changes are what a rehearsal changes in the copy of a folder. The zero value is
// nothing.
type Changes struct {
	StandIns StandIns          // of the sandbox, components and actions
	Out      StandIns          // other definitions that are left out, and why
	Files    map[string]string // files that are left out, and why; one that every app needs gets the least that will do
}

// None tells whether nothing is changed.
func (c Changes) None() bool { return len(c.StandIns)+len(c.Out)+len(c.Files) == 0 }

// Add leaves a definition out for a reason, unless it is left out already; false when
// that cannot be done. One that others deploy, build or run has a stand-in.
func (c *Changes) Add(app *appconfig.App, part Part, why string) bool {
	if c.Why(part) != "" {
		return false
	}
	kind, _, _ := strings.Cut(string(part), "/")
	switch kind {
	case appconfig.BlockSandbox, appconfig.BlockComponent, appconfig.BlockAction:
		if c.StandIns == nil {
			c.StandIns = StandIns{}
		}
		c.StandIns[part] = why
	case appconfig.BlockStack:
		return c.AddFile(app, appconfig.BlockStack+".toml", why)
	case appconfig.BlockMetadata:
		return c.AddFile(app, appconfig.BlockMetadata+".toml", why)
	case appconfig.BlockRunner, "":
		return false // it says what the app is for
	default:
		if c.Out == nil {
			c.Out = StandIns{}
		}
		c.Out[part] = why
	}
	return true
}

// AddFile leaves a file out for a reason; false when that cannot be done.
func (c *Changes) AddFile(app *appconfig.App, name, why string) bool {
	if name == "" || name == "runner.toml" || c.Files[name] != "" || filepath.Ext(name) != ".toml" || appconfig.IsWholeFile(name) {
		return false
	}
	if wholeFile(app) != "" && (name != "stack.toml" || app.Stack != nil) {
		return false
	}
	if c.Files == nil {
		c.Files = map[string]string{}
	}
	c.Files[name] = why
	return true
}

// Why is the reason for which a definition is left out; "" for one that is there.
func (c Changes) Why(part Part) string {
	if why := c.StandIns[part]; why != "" {
		return why
	}
	if why := c.Out[part]; why != "" {
		return why
	}
	return c.Files[string(part)+".toml"]
}

// wholeFile is the one file of an app in the older form, "" for all others.
func wholeFile(app *appconfig.App) string {
	for _, f := range app.Origin.Files {
		if appconfig.IsWholeFile(f.Path) {
			return f.Path
		}
	}
	return ""
}
