package usage

import "strings"

// Pairs reads a repeated flag of the form NAME=VALUE; nil when it was not given.
// Of a name that is given twice, the last value counts.
func Pairs[M ~map[string]string](flag string, given []string) (*M, error) {
	if len(given) == 0 {
		return nil, nil //nolint:nilnil // nothing was given
	}
	m := M{}
	for _, entry := range given {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, Errorf("%s %q is not NAME=VALUE", flag, Shortened(entry))
		}
		m[name] = value
	}
	return &m, nil
}
