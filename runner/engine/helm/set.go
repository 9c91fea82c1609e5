package helm

import (
	"errors"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
)

// set sets one value at a path. The path is one of `helm --set`; types are
// inferred as there: true, 3 and null are no strings. A value of several parts
// is not one assignment after the other, as on a command line, but one string:
// only a value that is {…} as a whole is a list.
func set(values map[string]any, path, value string) error {
	if path == "" || strings.ContainsAny(path, "=,{}") {
		return errors.New("it is no path of one value")
	}
	err := strvals.ParseInto(path+"="+escape(value), values)
	if err != nil {
		// The error of the parser has the value in it.
		return errors.New("the path cannot be set: a part of it is no map or list, or an index is too large")
	}
	return nil
}

// escape keeps the parser from taking commas and backslashes of a value for its
// own, unless the value is a list.
func escape(value string) string {
	if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") && len(value) > 1 {
		return value
	}
	escaped := strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(value)
	if strings.HasPrefix(escaped, "{") {
		escaped = `\` + escaped
	}
	return escaped
}
