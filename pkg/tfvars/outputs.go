package tfvars

// Outputs finds the names of the outputs that a file of Terraform's own language
// declares. whole is false when the file is broken or has too many: then there may
// be more.
func Outputs(source string) (names []string, whole bool) {
	whole = blocks(source, "output", func(name string, s *scanner) (ok, more bool) {
		if !isIdentifier(name) || len(names) == MaxVariables {
			return false, false
		}
		names = append(names, name)
		return s.attributes(&Variable{}), true
	})
	return names, whole
}

// outputsJSON is Outputs for the JSON form of the language.
func outputsJSON(source string) (names []string, whole bool) {
	whole = true
	root, ok := members(source)
	if !ok {
		return nil, false
	}
	for _, block := range root {
		if block.name != "output" {
			continue
		}
		for _, table := range tables(block.value, &whole) {
			for _, declared := range table {
				if !isIdentifier(declared.name) || len(names) == MaxVariables {
					whole = false
					continue
				}
				names = append(names, declared.name)
			}
		}
	}
	return names, whole
}
