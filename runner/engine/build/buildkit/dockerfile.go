package buildkit

import (
	"bytes"
	"fmt"
	"regexp"
)

// syntaxLine is a directive that has BuildKit pull another frontend, in each form
// that BuildKit takes it in: after # or //, with a hashbang before it, in any case.
var syntaxLine = regexp.MustCompile(`(?i)^\s*(?:#|//)\s*syntax\s*=\s*(\S+)`)

// syntaxJSON is the same as the first thing of a JSON document.
var syntaxJSON = regexp.MustCompile(`(?i)^\s*\{\s*"syntax"`)

// builtIn are the frontends that every BuildKit has in it: releases of its own
// Dockerfile syntax, without the experimental ones.
var builtIn = regexp.MustCompile(`^(?:docker\.io/)?docker/dockerfile(?::1(?:\.\d+){0,2})?(?:@sha256:[0-9a-f]{64})?$`)

// CheckDockerfile returns the Dockerfile as BuildKit gets it: a syntax line that
// names the frontend which BuildKit has built in becomes an empty comment, so that
// no image is pulled for it. ignored is what it named, "" for nothing. Another
// frontend is an image that could do anything with the build, and is an error.
func CheckDockerfile(text []byte) (out []byte, ignored string, err error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if syntaxJSON.Match(text) {
		return nil, "", fmt.Errorf("it is JSON that names a frontend of its own")
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		found := syntaxLine.FindSubmatch(line)
		if found == nil {
			continue
		}
		name := string(found[1])
		if !builtIn.MatchString(name) {
			return nil, "", fmt.Errorf("line %d: its syntax is that of the image %s", i+1, name)
		}
		ignored = name
		end := ""
		if bytes.HasSuffix(line, []byte("\n")) {
			end = "\n"
		}
		lines[i] = []byte("#" + end)
	}
	return bytes.Join(lines, nil), ignored, nil
}
