package tfvars

import (
	"io/fs"
	"slices"
	"strings"
)

// IsOpenTofu tells whether a file, by its name, is configuration that OpenTofu reads and
// Terraform does not.
func IsOpenTofu(name string) bool {
	return strings.HasSuffix(name, ".tofu") || strings.HasSuffix(name, ".tofu.json")
}

// Read names those files of a module's directory that one of the tools reads:
// configuration, and files of values that are taken by themselves. OpenTofu reads x.tofu
// in the place of x.tf, and x.tofu.json in that of x.tf.json, override files included;
// Terraform reads neither.
func Read(entries []fs.DirEntry, openTofu bool) []string {
	var names []string
	for _, e := range entries {
		if !e.IsDir() && (isConfiguration(e.Name()) || isAutomatic(e.Name())) {
			names = append(names, e.Name())
		}
	}
	if !openTofu {
		return slices.DeleteFunc(names, IsOpenTofu)
	}
	all := slices.Clone(names)
	return slices.DeleteFunc(names, func(name string) bool {
		for _, ending := range []string{".tf", ".tf.json"} {
			if base, ok := strings.CutSuffix(name, ending); ok {
				return slices.Contains(all, base+strings.Replace(ending, ".tf", ".tofu", 1))
			}
		}
		return false
	})
}
