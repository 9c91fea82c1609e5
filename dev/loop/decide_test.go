package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tested are sources as list makes them, of a tree at /src.
func tested() sources {
	const module = "github.com/berth-dev/berth/"
	in := func(path string, embeds []string, deps ...string) listedPackage {
		for i := range deps {
			deps[i] = module + deps[i]
		}
		return listedPackage{ImportPath: module + path, Dir: "/src/" + path, EmbedPatterns: embeds, Deps: append(deps, "fmt")}
	}
	return sourcesOf("/src", []listedPackage{
		{ImportPath: "fmt", Dir: "/usr/local/go/src/fmt"},
		{ImportPath: "github.com/jackc/pgx/v5", Dir: "/root/go/pkg/mod/github.com/jackc/pgx/v5@v5.7.0"},
		in("pkg/durable", nil),
		in("pkg/id", nil),
		in("services/internal/store", []string{"migrations/*.sql"}),
		in("services/ctl-api", nil, "services/internal/store", "pkg/id"),
		in("services/builder", nil, "services/internal/store", "pkg/id"),
		in("runner/engine/helm", nil),
		in("runner/cmd/engine", nil, "runner/engine/helm", "pkg/durable"),
		in("runner/cmd/runner", nil, "pkg/durable"),
		in("cli/internal/up", nil, "pkg/durable"),
		in("cli/internal/table", nil),
		in("cli/cmd/berth", nil, "cli/internal/up", "cli/internal/table", "pkg/durable"),
	})
}

// planned compares plans, but for the files that count: TestFilesThatCount does.
var planned = cmp.Options{cmp.AllowUnexported(plan{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".files" }, cmp.Ignore())}

func TestFilesThatCount(t *testing.T) {
	t.Parallel()
	got := decide(tested(), []string{"README.md", "cli/internal/up/part.go", "cli/internal/up/sedA1b2", "pkg/id/id.go", "pkg/id/id_test.go"})
	if diff := cmp.Diff([]string{"cli/internal/up/part.go", "pkg/id/id.go"}, got.files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// A package that a service imports now, and did not when it was saved.
func TestWhatWasMissed(t *testing.T) {
	t.Parallel()
	before := plan{build: []string{"berth-builder"}, files: []string{"pkg/id/id.go"}}
	now := plan{build: []string{"berth-builder", "berth-ctl-api"}, takeover: true, files: []string{"pkg/id/id.go"}}
	want := plan{build: []string{"berth-ctl-api"}, takeover: true, files: []string{"pkg/id/id.go"}}
	if diff := cmp.Diff(want, before.lacks(now), cmp.AllowUnexported(plan{})); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(plan{files: now.files}, now.lacks(before), cmp.AllowUnexported(plan{})); diff != "" {
		t.Errorf("nothing is missed (-want +got):\n%s", diff)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	all := []string{"berth", "berth-builder", "berth-ctl-api", "berth-engine", "berth-runner"}
	tests := []struct {
		name  string
		saved []string
		want  plan
	}{
		{name: "a file of one service", saved: []string{"services/ctl-api/main.go"}, want: plan{build: []string{"berth-ctl-api"}}},
		{name: "a package of two services", saved: []string{"services/internal/store/tx.go"}, want: plan{build: []string{"berth-builder", "berth-ctl-api"}}},
		{name: "a package that `berth up` is made of, too", saved: []string{"pkg/durable/write.go"},
			want: plan{build: []string{"berth", "berth-engine", "berth-runner"}, takeover: true}},
		{name: "the command line alone", saved: []string{"cli/internal/table/table.go"}, want: plan{build: []string{"berth"}}},
		{name: "`berth up`", saved: []string{"cli/internal/up/part.go"}, want: plan{build: []string{"berth"}, takeover: true}},
		{name: "the engine alone", saved: []string{"runner/engine/helm/diff.go"}, want: plan{build: []string{"berth-engine"}}},
		{name: "two files at once", saved: []string{"runner/engine/helm/diff.go", "services/ctl-api/main.go"},
			want: plan{build: []string{"berth-ctl-api", "berth-engine"}}},
		{name: "a new migration is embedded", saved: []string{"services/internal/store/migrations/00111_x.sql"},
			want: plan{build: []string{"berth-builder", "berth-ctl-api"}}},
		{name: "a query is generated from", saved: []string{"services/internal/store/queries/ctl/apps.sql"},
			want: plan{hints: []string{"services/internal/store/queries/ctl/apps.sql is saved: make generate writes the code that follows from it"}}},
		{name: "a contract is generated from", saved: []string{"openapi/ctl-api.yaml"},
			want: plan{hints: []string{"openapi/ctl-api.yaml is saved: make generate writes the code that follows from it"}}},
		{name: "a file that nothing embeds", saved: []string{"services/ctl-api/README.md"}},
		{name: "a page of the docs", saved: []string{"docs/flows.md", "README.md"}},
		{name: "a test", saved: []string{"services/ctl-api/main_test.go"}},
		{name: "what a test reads", saved: []string{"services/ctl-api/testdata/main.go"}},
		{name: "what is made, and what others keep", saved: []string{".bin/build/ctl-api", ".git/index", "sdk/typescript/node_modules/x/y.go", ".berth/log/up.log"}},
		{name: "what editors write", saved: []string{"services/ctl-api/.main.go.swp", "services/ctl-api/main.go~", "services/ctl-api/4913", "services/ctl-api/#main.go#"}},
		{name: "a package that is not known", saved: []string{"services/internal/fresh/fresh.go"}, want: plan{relist: true}},
		{name: "an unknown package and a known one", saved: []string{"pkg/fresh/fresh.go", "services/ctl-api/main.go"},
			want: plan{build: []string{"berth-ctl-api"}, relist: true}},
		{name: "the workspace", saved: []string{"go.work"}, want: plan{build: all, takeover: true}},
		{name: "a module of the workspace", saved: []string{"services/go.mod"}, want: plan{build: all, takeover: true}},
		{name: "another module", saved: []string{"dev/go.mod", "examples/shop/src/web/go.sum"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, decide(tested(), tt.saved), planned); diff != "" {
				t.Errorf("decide(%q) (-want +got):\n%s", tt.saved, diff)
			}
		})
	}
}

// What is listed and what is built are the same executables.
func TestRootsAreTheExecutables(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../scripts/executables.sh")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, row := range regexp.MustCompile(`(?m)^(berth\S*) +\./(\S+)$`).FindAllStringSubmatch(string(script), -1) {
		want = append(want, row[2]+" "+row[1])
	}
	for path, name := range roots {
		if name != supervisor {
			got = append(got, strings.TrimPrefix(path, "github.com/berth-dev/berth/")+" "+name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("executables (-executables.sh +roots):\n%s", diff)
	}
}

// What Go says of this tree.
func TestList(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	listed, err := list(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	services := []string{"berth-builder", "berth-ctl-api", "berth-log-ingest", "berth-runner-api"}
	tests := []struct {
		saved string
		want  plan
	}{
		{"services/ctl-api/main.go", plan{build: []string{"berth-ctl-api"}}},
		{"services/internal/store/migrations/00001_x.sql", plan{build: services}},
		{"runner/engine/terraform/plan.go", plan{build: []string{"berth-engine"}}},
		{"cli/internal/up/part.go", plan{build: []string{"berth"}, takeover: true}},
		{"cli/internal/table/table.go", plan{build: []string{"berth"}}},
		{"pkg/durable/durable.go", plan{build: listed.all, takeover: true}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, decide(listed, []string{tt.saved}), planned); diff != "" {
			t.Errorf("decide(%s) (-want +got):\n%s", tt.saved, diff)
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	got := []string{
		outcome([]string{"services/ctl-api/main.go"}, []string{"ctl-api"}, 1500*time.Millisecond, 2300*time.Millisecond),
		outcome([]string{"cli/a.go", "cli/b.go"}, nil, time.Second, 1100*time.Millisecond),
	}
	want := []string{
		"✓ services/ctl-api/main.go runs after 2.3 s (build 1.5 s): ctl-api",
		"✓ cli/a.go and 1 more: built in 1.0 s; no part that runs is made of it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}
