package manual_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/manual"
)

func tree() *cobra.Command {
	nothing := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "berth", Short: "Run things"}
	root.CompletionOptions.DisableDefaultCmd = true
	apps := &cobra.Command{Use: "apps", Short: "What is run"}
	list := &cobra.Command{Use: "list", Short: "List apps", Long: "Lists the apps of BERTH_ORG.", Example: "  berth apps list --limit 3", RunE: nothing}
	list.Flags().Int("limit", 100, "show at most this many")
	apps.AddCommand(list, &cobra.Command{Use: "secret", Short: "In no help", Hidden: true, RunE: nothing})
	root.AddCommand(apps, manual.Command(cobra.ExactArgs(1), func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }))
	return root
}

func TestEveryCommandHasAPage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	root := tree()
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	if diff := cmp.Diff([]string{"berth-apps-list.1", "berth-apps.1", "berth-man.1", "berth.1"}, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	page, err := os.ReadFile(filepath.Join(dir, "berth-apps-list.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`.TH "BERTH-APPS-LIST" "1" "Nov 2026" "berth `, `berth-apps-list - List apps`, "Lists the apps of BERTH_ORG.", "show at most this many", "berth apps list --limit 3", `\fBberth-apps(1)\fP`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in the page:\n%s", want, page)
		}
	}
}
