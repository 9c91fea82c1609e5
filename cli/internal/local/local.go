// Package local is what commands know of the Berth on this machine, which berth
// up runs (package up): where its data is, its context, and how its status reads.
package local

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/up"
)

// Context is the name of the context that berth up writes.
const Context = "local"

// Layout is the data folder of this machine.
func Layout() (up.Layout, error) {
	dir, err := up.DefaultDir()
	if err != nil {
		return up.Layout{}, err
	}
	return up.LayoutAt(dir)
}

// HasCluster tells whether local installs of this machine's Berth have a cluster.
func HasCluster() bool {
	layout, err := Layout()
	return err == nil && up.HasCluster(layout)
}

// WriteContext points the context local at a running Berth. It becomes the
// current one when there is none. note says when it does not, and when it pointed
// at a Berth in another data folder.
func WriteContext(file *contexts.File, c contexts.Context) (note string, err error) {
	before := file.Contexts[Context]
	file.Contexts[Context] = c
	switch file.Current {
	case "":
		file.Current = Context
	case Context:
		if before.TokenFile != "" && before.TokenFile != c.TokenFile {
			note = fmt.Sprintf("the context %q pointed to %s with the token in %s; it points to this Berth now", Context, before.URL, before.TokenFile)
		}
	default:
		note = fmt.Sprintf("the current context is still %q; use --context %s or berth context use %s", file.Current, Context, Context)
	}
	return note, file.Save()
}

// WriteContextOf is WriteContext of the Berth in a data folder, in the user's file
// of contexts.
func WriteContextOf(getenv func(string) string, layout up.Layout, url string) (note string, err error) {
	path, err := contexts.Path(getenv)
	if err != nil {
		return "", err
	}
	file, err := contexts.Load(path)
	if err != nil {
		return "", err
	}
	return WriteContext(file, contexts.Context{URL: url, TokenFile: layout.Token()})
}

// WriteMissingContext writes the context of a running Berth again when it was
// lost; one that is there stays as it is. note is for people, "" when nothing was
// done.
func WriteMissingContext(getenv func(string) string, layout up.Layout, url string) (note string) {
	path, err := contexts.Path(getenv)
	if err != nil {
		return ""
	}
	if file, err := contexts.Load(path); err != nil || file.Contexts[Context] != (contexts.Context{}) {
		return ""
	}
	note, err = WriteContextOf(getenv, layout, url)
	switch {
	case err != nil:
		return fmt.Sprintf("! cannot write the context %q: %v", Context, err)
	case note != "":
		return "  " + note
	}
	return fmt.Sprintf("  the context %q was missing and is written again", Context)
}

// StatusLines show a status to people. The first word of a running Berth's is its
// URL.
func StatusLines(s up.Status) []string {
	first := fmt.Sprintf("berth is not running (data folder %s)", s.Dir)
	if s.Running {
		first = fmt.Sprintf("%s  data in %s  supervisor pid %d", s.URL, s.Dir, s.PID)
	}
	lines := []string{first}
	for _, part := range s.Parts {
		mark := "✓"
		if !part.Ready {
			mark = "✗"
		}
		lines = append(lines, fmt.Sprintf("%s %-22s %s", mark, part.Name, strings.TrimSpace(detail(part))))
		if !part.Ready && part.LastLine != "" {
			lines = append(lines, "    "+part.LastLine)
		}
	}
	return lines
}

func detail(part up.PartHealth) string {
	text := fmt.Sprintf("pid %d", part.PID)
	if part.Restarts > 0 {
		text += fmt.Sprintf(", restarted %d times, last: %s", part.Restarts, part.Last)
	}
	if part.Ready {
		return text
	}
	text += ", " + part.Why
	if part.Looping {
		text += " and keeps crashing: see " + part.Log
	}
	return text
}
