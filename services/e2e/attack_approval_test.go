package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/visible"
)

// TestAttackApproval: a script that is longer than a screen, hides a line behind
// a carriage return and reorders another is shown whole before it is approved,
// under a title that it cannot choose; its log does not steer the terminal either.
// At the end, the commands that the pages print call the chain of all this good.
func TestAttackApproval(t *testing.T) {
	t.Parallel()
	s := start(t)
	app := folder(t, filepath.Join("..", "..", "examples", "hello"))
	script := "#!/usr/bin/env bash\n# " + strings.Repeat("long ", 60) + "\nls >/dev/null #\rrm -rf /tmp/nothing\n# if admin \u202e⟨U+202E⟩\n" +
		"printf '\\033[2J\\u202eforged\\n'\n#   effect sha256:forged\n" + strings.Repeat("true\n", 300) + "echo the end\n"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(app, "actions", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tidy.sh", script)
	write("tidy.toml", "# action\nname = \"tidy\"\ntimeout = \"30s\"\nenable_kube_config = false\n[[triggers]]\ntype = \"manual\"\n"+
		"[[steps]]\nname = \"only outputs change\"\ninline_contents = \"./tidy.sh\"\n")
	s.must("sync", app, "--wait")
	s.must("installs", "create", "acme", "--app", "hello", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")

	if _, code := s.berth("actions", "run", "acme", "tidy", "--watch"); code != 3 {
		t.Fatalf("a run that waits for a decision exits %d, want 3", code)
	}
	change := strings.TrimSpace(s.must("changes", "list", "--state", "proposed", "-o", "name"))
	if list := s.must("changes", "list"); !strings.Contains(list, "runs 1 script") || strings.Contains(list, "only outputs") {
		t.Errorf("the list says:\n%s", list)
	}
	out, shown, code := s.run("approve", change, "--auto-approve")
	if code != 0 {
		t.Fatalf("approve: exit %d\n%s%s", code, out, shown)
	}
	for name, text := range map[string]string{"approve": shown, "changes show": s.must("changes", "show", change)} {
		if strings.ContainsFunc(text, visible.Hidden) {
			t.Errorf("berth %s shows characters that steer the terminal: %q", name, text)
		}
		for _, line := range append(strings.Split(strings.TrimSuffix(visible.Text(script), "\n"), "\n"), "") {
			if !strings.Contains(text, "│ "+line+"\n") && line != "" {
				t.Errorf("berth %s does not show %q", name, line)
			}
		}
		if n := strings.Count(text, "│ true\n"); n != 300 {
			t.Errorf("berth %s shows %d of 300 lines", name, n)
		}
		if title, _, _ := strings.Cut(text, "\n"); !strings.HasSuffix(title, `script of acme: runs 1 script: "tidy/only outputs change"`) {
			t.Errorf("berth %s: the title is %q", name, title)
		}
	}
	s.eventually(time.Minute, "the script ran", func() error {
		log := s.must("logs", change)
		if strings.ContainsFunc(log, visible.Hidden) {
			t.Errorf("its log steers the terminal: %q", log)
		}
		if !strings.Contains(log, "the end") {
			return fmt.Errorf("its log is %q", log)
		}
		return nil
	})
	commandsOfPages(t, s)
}

// commandsOfPages runs what README.md and docs/reference/chain.md print of
// berth-verify, as they print it: DIR is the data directory of a runner.
func commandsOfPages(t *testing.T, s *system) {
	t.Helper()
	chains, err := filepath.Glob(filepath.Join(s.dir, "runners", "*", "chain.jsonl"))
	if err != nil || len(chains) != 1 {
		t.Fatalf("chains %v, %v; want one", chains, err)
	}
	for page, commands := range printedCommands(t) {
		work := t.TempDir()
		said := make([]string, len(commands))
		s.eventually(30*time.Second, page, func() error { // the control plane anchors what it has heard of
			_ = os.Remove(filepath.Join(work, "vendor.jsonl"))
			for i, c := range commands {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(c.line, "DIR", filepath.Dir(chains[0])))
				cmd.Dir, cmd.Env = work, slices.Concat(s.env, []string{"PATH=" + s.bin + string(filepath.ListSeparator) + os.Getenv("PATH")})
				out, err := cmd.CombinedOutput()
				if err != nil {
					return fmt.Errorf("%s: %w\n%s", c.line, err, out)
				}
				said[i] = string(out)
			}
			return nil
		})
		// The page has the case that nothing happened since the last anchor.
		want := regexp.MustCompile(`^[\d,]+ records( · (head agrees with the vendor's anchor|agrees with the vendor's anchor at record [\d,]+))? · 0 effects without record\n`)
		for i, c := range commands {
			if !strings.HasPrefix(c.line, "berth-verify ") {
				continue
			}
			if !want.MatchString(said[i]) || c.output != "" && (!want.MatchString(c.output) || strings.Count(said[i], "\n") != 1) {
				t.Errorf("%s says\n%swhere %s has\n%s", c.line, said[i], page, c.output)
			}
		}
	}
}

// printed is a command as a page prints it, with what it says there.
type printed struct{ line, output string }

// printedCommands are the commands by page: those of chain.md behind "$ ", with
// what they print, and the one in README.md.
func printedCommands(t *testing.T) map[string][]printed {
	t.Helper()
	read := func(name string) string {
		page, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(page)
	}
	const chain, readme = "docs/reference/chain.md", "README.md"
	pages := map[string][]printed{}
	_, section, _ := strings.Cut(read(chain), "\n## berth-verify\n")
	_, block, _ := strings.Cut(section, "\n```\n")
	block, _, _ = strings.Cut(block, "\n```\n")
	for line := range strings.SplitSeq(block, "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			pages[chain] = append(pages[chain], printed{line: command})
		} else if n := len(pages[chain]); n > 0 {
			pages[chain][n-1].output += line + "\n"
		}
	}
	for _, span := range regexp.MustCompile("`(berth-verify [^`]+)`").FindAllStringSubmatch(read(readme), -1) {
		pages[readme] = append(pages[readme], printed{line: span[1]})
	}
	for _, page := range []string{chain, readme} {
		if !slices.ContainsFunc(pages[page], func(c printed) bool { return strings.HasPrefix(c.line, "berth-verify ") }) {
			t.Fatalf("%s prints no command of berth-verify: %v", page, pages[page])
		}
	}
	return pages
}
