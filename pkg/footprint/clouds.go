package footprint

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// Operations are what Terraform needs to be allowed for one type of resource.
type Operations struct {
	Provider string
	// Page is where the cloud documents the actions.
	Page                         string
	Create, Read, Update, Delete []string
}

//go:embed clouds.txt
var cloudsText string

// Clouds are the known types of resources. The map is shared: read it only.
var Clouds = sync.OnceValue(func() map[string]Operations {
	types := map[string]Operations{}
	var section Operations
	var prefix string
	for line := range strings.Lines(cloudsText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			head := strings.Split(strings.Trim(line, "[]"), " | ")
			section, prefix = Operations{Provider: head[0], Page: head[1]}, head[2]
		default:
			name, actions, _ := strings.Cut(line, ": ")
			list := strings.Split(actions, " | ")
			o := section
			for i, to := range []*[]string{&o.Create, &o.Read, &o.Update, &o.Delete} {
				*to = actionsOf(list[i], prefix)
			}
			types[name] = o
		}
	}
	return types
})

func actionsOf(words, prefix string) []string {
	var list []string
	for _, action := range strings.Fields(words) {
		switch full, other := strings.CutPrefix(action, "="); {
		case action == "-":
		case other:
			list = append(list, full)
		default:
			list = append(list, prefix+action)
		}
	}
	return list
}

// providers that need no right of anybody: they compute, or work on the runner's own files.
var providersWithoutRights = []string{
	"terraform.io/builtin/terraform", "hashicorp/random", "hashicorp/null", "hashicorp/time", "hashicorp/tls", "hashicorp/local", "hashicorp/archive",
	"hashicorp/template", "hashicorp/external", "hashicorp/cloudinit",
}

// needsNoRights tells whether a provider, under its full name, is one of them.
func needsNoRights(provider string) bool {
	return slices.ContainsFunc(providersWithoutRights, func(name string) bool {
		return provider == name || provider == "registry.terraform.io/"+name || provider == "registry.opentofu.org/"+name
	})
}
