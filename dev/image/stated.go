package image

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	// licenseHeading begins the part of a README that has the terms.
	licenseHeading = regexp.MustCompile(`(?im)^#+[ \t]*licen[sc]e[ \t]*\r?\n`)
	// anyHeading ends it.
	anyHeading = regexp.MustCompile(`(?m)^#+[ \t]`)
	// grants are the words by which a comment above code is one of terms.
	grants = regexp.MustCompile(`(?i)\blicensed under\b|\bSPDX-License-Identifier\b`)
)

// statedTerms are those that a module without a license file names elsewhere: in
// its README below the heading "License", else above its code, each wording once.
func statedTerms(dir string) ([]string, error) {
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err == nil {
		if terms := licensePart(string(readme)); terms != "" {
			return []string{"(from its README: it has no file with a license)\n\n" + terms}, nil
		}
	}
	var texts []string
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		if terms := termsAbove(path); terms != "" {
			texts = append(texts, "(from its code: it has no file with a license)\n\n"+terms)
		}
		return nil
	})
	slices.Sort(texts)
	return slices.Compact(texts), err
}

// licensePart is the text below the heading "License", "" when there is none.
func licensePart(readme string) string {
	_, after, found := cutMatch(readme, licenseHeading)
	if !found {
		return ""
	}
	part, _, _ := cutMatch(after, anyHeading)
	return strings.TrimSpace(strings.ReplaceAll(part, "\r\n", "\n"))
}

func cutMatch(text string, by *regexp.Regexp) (before, after string, found bool) {
	at := by.FindStringIndex(text)
	if at == nil {
		return text, "", false
	}
	return text[:at[0]], text[at[1]:], true
}

// termsAbove is the comment with terms above the code of a file, its lines
// without the spaces around them.
func termsAbove(file string) string {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		return ""
	}
	for _, comment := range parsed.Comments {
		if text := comment.Text(); comment.Pos() < parsed.Package && grants.MatchString(text) {
			lines := strings.Split(strings.TrimSpace(text), "\n")
			for i := range lines {
				lines[i] = strings.TrimSpace(lines[i])
			}
			return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
		}
	}
	return ""
}
