package grant

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/berth-dev/berth/pkg/customerrole"
)

// MaxRoles is how many roles a plugin may be given.
const MaxRoles = 10

// maxRole is how long the name of one may be, in bytes.
const maxRole = 200

// ParseRole reads the name of a role as an app writes it, and returns its canonical form.
func ParseRole(text string) (string, error) {
	name := customerrole.Canonical(text)
	if strings.TrimSpace(name) != name || name == "" || len(name) > maxRole || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("role %q: it is no name of a role", text)
	}
	return name, nil
}

// ParseRoles reads a list, and names each entry that is none.
func ParseRoles(texts []string) ([]string, error) {
	var names []string
	var errs []error
	if len(texts) > MaxRoles {
		errs = append(errs, fmt.Errorf("there are %d roles, %d is the most", len(texts), MaxRoles))
	}
	for _, text := range texts {
		name, err := ParseRole(text)
		if err == nil && slices.Contains(names, name) {
			err = fmt.Errorf("role %q is said twice", text)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		names = append(names, name)
	}
	return names, errors.Join(errs...)
}
