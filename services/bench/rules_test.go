package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func TestRulesTable(t *testing.T) {
	t.Parallel()
	kept, missed := &held{n: 1}, &held{n: 50}
	for _, h := range []*held{kept, missed} {
		h.bare.add(100 * time.Millisecond)
	}
	kept.ruled.add(109 * time.Millisecond)
	missed.ruled.add(120 * time.Millisecond)
	var out bytes.Buffer
	if err := rulesTable(&out, []*held{kept, missed}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"× 1.09 | kept", "× 1.20 | missed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, out.String())
		}
	}
}

// The app that is measured is one that a sync takes, with all of its policies.
func TestAppWithPolicies(t *testing.T) {
	t.Parallel()
	folder := t.TempDir() + "/app"
	if err := writeApp(folder, moduleKinds[0], 2, "x"); err != nil {
		t.Fatal(err)
	}
	if err := writePolicies(folder, policies); err != nil {
		t.Fatal(err)
	}
	app, diags := check.Folder(os.DirFS(folder), appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatalf("%v", diags)
	}
	if len(app.Policies) != policies || app.Policies[1].Engine != "opa" || !strings.Contains(app.Policies[1].Contents.Contents, "database_2") {
		t.Errorf("the app has %d policies: %+v", len(app.Policies), app.Policies)
	}
}
