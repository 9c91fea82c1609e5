package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest  = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	testInCode = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
)

// TestThreatModel: each test that the threat model names is there. A promise whose
// test went away must go, too.
func TestThreatModel(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		code, err := os.ReadFile(path)
		for _, match := range testInCode.FindAllSubmatch(code, -1) {
			there[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := namedTest.FindAllSubmatch(page, -1)
	if len(named) < 30 {
		t.Fatalf("the page names %d tests", len(named))
	}
	for _, match := range named {
		if name := string(match[1]); !there[name] {
			t.Errorf("docs/threat-model.md names %s, which is no test of this repository", name)
		}
	}
}
