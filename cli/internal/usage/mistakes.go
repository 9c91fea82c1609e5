package usage

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Check looks for what is wrong with a command line before anything is done
// about it, so that every command uses the same words.
func Check(cmd *cobra.Command, args []string) error {
	see := "; see " + cmd.CommandPath() + " --help"
	if slices.Contains(args, "") {
		return Errorf("an argument of %s is empty%s", cmd.CommandPath(), see)
	}
	var wrong error
	exclusive := map[string][]string{} // what was given, by group
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if wrong != nil {
			return
		}
		if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required && (!f.Changed || f.Value.String() == "") {
			wrong = Errorf("%s needs --%s%s", cmd.CommandPath(), f.Name, see)
		}
		if kind := f.Value.Type(); (kind == "int" || kind == "duration") && strings.HasPrefix(f.Value.String(), "-") {
			wrong = Errorf("--%s %s is negative%s", f.Name, f.Value, see)
		}
		if f.Changed {
			for _, group := range f.Annotations["cobra_annotation_mutually_exclusive"] {
				exclusive[group] = append(exclusive[group], "--"+f.Name)
			}
		}
	})
	for _, given := range exclusive {
		if wrong == nil && len(given) > 1 {
			wrong = Errorf("%s cannot be used together%s", strings.Join(given, " and "), see)
		}
	}
	return wrong
}

// OfFlag says what is wrong with a flag, without the words of the parser.
func OfFlag(cmd *cobra.Command, err error) error {
	see := "; see " + cmd.CommandPath() + " --help"
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return Errorf("%w%s", err, see)
	}
	var what string
	switch invalid.GetFlag().Value.Type() {
	case "int":
		what = "is not a whole number"
	case "duration":
		what = "is not a duration such as 90s or 5m"
	case "bool":
		what = "is neither true nor false"
	default:
		what = "cannot be used: " + invalid.Unwrap().Error()
	}
	return Errorf("--%s %q %s%s", invalid.GetFlag().Name, invalid.GetValue(), what, see)
}

// Choice is the value of a flag that takes certain words only.
type Choice struct {
	word    *string
	allowed []string
}

// OneOf makes a Choice. Nothing is chosen at first.
func OneOf[S ~string](word *string, allowed ...S) Choice {
	c := Choice{word: word}
	for _, a := range allowed {
		c.allowed = append(c.allowed, string(a))
	}
	return c
}

// String implements pflag.Value.
func (c Choice) String() string {
	if c.word == nil {
		return ""
	}
	return *c.word
}

// Set implements pflag.Value.
func (c Choice) Set(word string) error {
	if !slices.Contains(c.allowed, word) {
		return fmt.Errorf("there are %s", strings.Join(c.allowed, ", "))
	}
	*c.word = word
	return nil
}

// Type implements pflag.Value.
func (Choice) Type() string { return "string" }

const maxName = 63 // letters, as in the contract

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// Nameable tells whether something new may be called so.
func Nameable(noun, name string) error {
	if len(name) > maxName || !namePattern.MatchString(name) {
		return Errorf("%q is not a valid name for %s: use lower-case letters, digits and dashes, at most %d characters", Shortened(name), noun, maxName)
	}
	return nil
}

// Shortened keeps an error to one line, however long what was typed is.
func Shortened(text string) string {
	const enough = 80
	if runes := []rune(text); len(runes) > enough {
		return string(runes[:enough]) + "…"
	}
	return text
}
