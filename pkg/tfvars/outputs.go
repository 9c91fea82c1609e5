package tfvars

// Outputs finds the names of the outputs that a file of Terraform's own language
// declares. whole is false when the file is broken or has too many: then there may
// be more.
func Outputs(source string) (names []string, whole bool) {
	s := newScanner(source)
	whole = true
	depth := 0
	var head statement
	for {
		t := s.next()
		switch {
		case t.kind == tokenEnd:
			return names, whole && depth == 0 && !s.broken
		case t.kind == tokenLine:
			if depth == 0 {
				head = statement{}
			}
			continue
		case t.opens():
			if depth == 0 && t.text == "{" && head.n == 2 && head.first[0].isWord("output") {
				name := head.first[1].unquoted()
				if !isIdentifier(name) || len(names) == MaxVariables {
					return names, false
				}
				names = append(names, name)
			}
			depth++
		case t.closes():
			if depth--; depth < 0 {
				depth, whole = 0, false
			}
			if depth == 0 {
				head = statement{}
			}
			continue
		}
		if depth == 0 {
			head.add(t)
		}
	}
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
