package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/command"
)

// shown is a command in a page's source: in quotes or backticks, or as the text of an element.
var shown = regexp.MustCompile("[\"'`>](berth [a-z][^\"`<\n]*)[\"`<]")

// hole is what a page fills in.
var hole = regexp.MustCompile(`\$\{[^}]*\}`)

// partOf are beginnings that a page adds to.
var partOf = map[string]bool{
	"berth actions run": true, "berth approve": true, "berth bulk": true, "berth customers create": true, "berth deploy": true, "berth installs create": true, "berth installs provision": true, "berth members create": true, "berth releases revoke": true, "berth releases sign": true,
	"berth rollback": true,
}

// filled is a command with something in each hole, and in place of what a reader fills in.
func filled(line string) string {
	line = hole.ReplaceAllString(strings.ReplaceAll(line, "--diff ${", "--diff 2026-11-29T00:00:00${"), "1")
	if at := strings.Index(line, "${"); at >= 0 { // it has quotes of its own
		line = line[:at] + "1"
	}
	return strings.NewReplacer("ROLE", "viewer", "--diff 2026-11-29T00:00:001Z", "--diff 2026-11-29T00:00:00Z").Replace(line)
}

// TestCommandsOfTheDashboard: each command that a page shows is one of this program, with its
// flags.
func TestCommandsOfTheDashboard(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir(filepath.Join("..", "..", "..", "web", "src"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(strings.TrimSuffix(path, "x"), ".ts") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range shown.FindAllSubmatch(source, -1) {
			line := strings.TrimSpace(string(match[1]))
			if partOf[line] || strings.Contains(line, "${flags") || strings.Contains(line, "'") {
				continue
			}
			found++
			root := (&cli{&command.CLI{Getenv: func(string) string { return "" }, Now: time.Now}}).root()
			words := strings.Fields(filled(line))[1:]
			if cmd, _, err := root.Find(words); err == nil && len(words) == 1 && cmd.HasSubCommands() {
				continue // it lists
			}
			if _, err := understood(root, words); err != nil {
				t.Errorf("%s shows %q: %v", filepath.Base(path), line, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("only %d commands were found in the pages", found)
	}
}
