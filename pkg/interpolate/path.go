package interpolate

import "slices"

// resolve turns a path from the root of the data into references. A whole read
// of the legacy alias .nuon.install is one of all that it stands for.
func resolve(p []string, whole bool) []Reference {
	if len(p) == 0 || p[0] == Any {
		return []Reference{Reference{Root: RootTree}.classify()}
	}
	switch p[0] {
	case "action":
		return []Reference{Reference{Root: RootAction, Path: slices.Clone(p[1:])}.classify()}
	case "nuon", "berth":
	default:
		return []Reference{Reference{Root: p[0], Path: slices.Clone(p[1:])}.classify()}
	}
	p = p[1:]
	legacy := len(p) > 0 && p[0] == "install"
	paths := [][]string{canonicalPath(p)}
	if legacy && whole && (len(p) == 1 || p[1] == Any) {
		paths = [][]string{{"id"}, {"name"}, {"domain"}, {"inputs", "inputs"}, {"sandbox", "outputs"}}
	}
	var found []Reference
	for _, path := range paths {
		r := Reference{Root: RootTree, Path: path}.classify()
		r.Legacy = legacy
		found = append(found, r)
	}
	return found
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
