package interpolate

import "slices"

// resolve turns a path from the root of the data into a reference.
func resolve(p []string) Reference {
	if len(p) == 0 || p[0] == Any {
		return Reference{Root: RootTree}
	}
	switch p[0] {
	case "action":
		return Reference{Root: RootAction, Path: slices.Clone(p[1:])}
	case "nuon", "berth":
		return Reference{Root: RootTree, Path: canonicalPath(p[1:])}
	}
	return Reference{Root: p[0], Path: slices.Clone(p[1:])}
}

// canonicalPath resolves the legacy alias .nuon.install.
func canonicalPath(p []string) []string {
	if len(p) < 2 || p[0] != "install" {
		return slices.Clone(p)
	}
	rest := p[2:]
	switch p[1] {
	case "id", "name":
		return slices.Clone(p[1:])
	case "public_domain", "internal_domain":
		return slices.Concat([]string{"domain"}, p[1:])
	case "inputs":
		return slices.Concat([]string{"inputs", "inputs"}, rest)
	case "sandbox":
		return slices.Concat([]string{"sandbox"}, rest)
	}
	return slices.Clone(p)
}
