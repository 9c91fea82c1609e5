package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDashboardLife goes through the life of installs in the dashboard, from the first login on
// an empty Berth: web/journeys/full. The app is examples/hello, and what of it can go wrong
// comes from testdata/dashboard.
func TestDashboardLife(t *testing.T) {
	t.Parallel()
	if os.Getenv("BERTH_WEB_FULL") == "" {
		t.Skip("long: make web-full runs it")
	}
	chromium := chromiumOf(t)
	s := start(t, "TF_CLI_CONFIG_FILE="+worldMirror(t), webhookAllow)
	app := folder(t, filepath.Join("..", "..", "examples", "hello"))
	if err := os.CopyFS(app, os.DirFS(filepath.Join("testdata", "dashboard"))); err != nil {
		t.Fatal(err)
	}
	// One look is enough: people at a screen wait for minutes here.
	check := filepath.Join(app, "actions", "files_intact.toml")
	edit(t, check, "unhealthy_after = 3", "unhealthy_after = 1")
	edit(t, check, "healthy_after   = 2", "healthy_after   = 1")
	s.journeys("journeys/full", "BERTH_CHROMIUM="+chromium, "BERTH_APP="+app, "TMPDIR="+t.TempDir())
}
