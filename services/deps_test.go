// Package deps_test holds the import rules of the module services (ARCHITECTURE.md)
// against what is really linked, also indirectly.
package deps_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const berth = "github.com/berth-dev/berth/"

func TestImports(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		packages string
		except   []string // of packages, those for which it does not hold
		never    []string // prefixes of import paths
	}{
		{
			name:     "the control plane links no other module than pkg",
			packages: "./...",
			never: []string{
				berth + "runner/",
				berth + "cli/",
				"helm.sh/",
				"github.com/kyverno/",
				"github.com/hashicorp/terraform-exec/",
			},
		},
		{
			name:     "only builder's fleet reaches a cluster, in a package of its own; builder links it",
			packages: "./...",
			except:   []string{berth + "services/builder", berth + "services/builder/internal/fleet/pods"},
			never:    []string{"k8s.io/", "sigs.k8s.io/"},
		},
		{
			name:     "ctl-api imports no other service, nor its statements",
			packages: "./ctl-api/...",
			never: []string{
				berth + "services/runner-api/",
				berth + "services/builder/",
				berth + "services/log-ingest/",
				berth + "services/internal/store/runnerdb",
				berth + "services/internal/store/builderdb",
				berth + "services/internal/store/logdb",
			},
		},
		{
			name:     "what a workflow does is decided without a store",
			packages: "./ctl-api/internal/flow",
			never:    []string{berth + "services/internal/store/", "github.com/jackc/pgx/", "github.com/riverqueue/"},
		},
		{
			name:     "what a job is told is made without a store",
			packages: "./ctl-api/internal/orders",
			never:    []string{berth + "services/internal/store/", "github.com/jackc/pgx/", "github.com/riverqueue/"},
		},
		{
			name:     "runner-api imports no other service, nor its statements",
			packages: "./runner-api/...",
			never: []string{
				berth + "services/ctl-api/",
				berth + "services/builder/",
				berth + "services/log-ingest/",
				berth + "services/internal/store/ctldb",
				berth + "services/internal/store/builderdb",
				berth + "services/internal/store/logdb",
			},
		},
		{
			name:     "builder imports no other service, nor its statements",
			packages: "./builder/...",
			never: []string{
				berth + "services/ctl-api/",
				berth + "services/runner-api/",
				berth + "services/log-ingest/",
				berth + "services/internal/store/ctldb",
				berth + "services/internal/store/runnerdb",
				berth + "services/internal/store/logdb",
			},
		},
		{
			name:     "log-ingest imports no other service, nor its statements",
			packages: "./log-ingest/...",
			never: []string{
				berth + "services/ctl-api/",
				berth + "services/runner-api/",
				berth + "services/builder/",
				berth + "services/internal/store/ctldb",
				berth + "services/internal/store/runnerdb",
				berth + "services/internal/store/builderdb",
			},
		},
		{
			name:     "what services share imports no service, nor its statements",
			packages: "./internal/...",
			never: []string{
				berth + "services/ctl-api/",
				berth + "services/runner-api/",
				berth + "services/builder/",
				berth + "services/log-ingest/",
				berth + "services/internal/store/ctldb",
				berth + "services/internal/store/runnerdb",
				berth + "services/internal/store/builderdb",
				berth + "services/internal/store/logdb",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range list(t, tc.packages) {
				if slices.Contains(tc.except, p.ImportPath) {
					continue
				}
				for _, dep := range p.Deps {
					for _, never := range tc.never {
						if dep == strings.TrimSuffix(never, "/") || strings.HasPrefix(dep, never) {
							t.Errorf("%s links %s; go mod why %s says through what", p.ImportPath, dep, dep)
						}
					}
				}
			}
		})
	}
}

// Of builder too only that package imports what reaches a cluster.
func TestClusterIsTheFleets(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "./...") {
		for _, path := range p.Imports {
			if strings.HasPrefix(path, "k8s.io/") && p.ImportPath != berth+"services/builder/internal/fleet/pods" {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

// Each room of ctl-api takes what it needs from the rooms below it (ARCHITECTURE.md):
// those that are named here, and no other.
func TestRoomsOfCtlAPI(t *testing.T) {
	t.Parallel()
	const rooms = berth + "services/ctl-api/internal/"
	below := map[string][]string{
		"alarms":       {},
		"alerts":       {},
		"alertwatch":   {"alerts", "availability", "database"},
		"alertapi":     {"alerts", "apigen", "apiref", "database", "installs", "paging", "why"},
		"apiref":       {"apigen"},
		"database":     {},
		"destruction":  {},
		"flow":         {},
		"foresight":    {},
		"orders":       {},
		"events":       {"database"},
		"keys":         {"database"},
		"health":       {"database"},
		"availability": {},
		"drift":        {"database", "releaseview"},
		"driftapi":     {"apigen", "database", "fleetapi", "installs", "paging", "releaseview"},
		"healthapi":    {"apigen", "availability", "database", "fleetapi", "installs", "paging"},
		"recipient":    {"database"},
		"variables":    {"database", "keys"},
		"access":       {"database", "keys"},
		"browser":      {},
		"loginapi":     {"access", "apigen", "browser", "database", "keys", "paging"},
		"logproxy":     {},
		"oidclogin":    {"access", "apigen", "browser", "database", "keys"},
		"bulk":         {"database", "keys"},
		"approval":     {},
		"freeze":       {},
		"clearance":    {"approval", "database", "flow", "freeze"},
		"clearanceapi": {"apigen", "approval", "clearance", "database", "freeze", "installs", "releaseview", "roles"},
		"roles":        {"flow"},
		"roleswitch":   {"database", "releaseview", "roles"},
		"remedyask":    {"database", "releaseview"},
		"plantree":     {},
		"readme":       {},
		"paging":       {},
		"csvlist":      {},
		"fleetapi":     {"apigen", "apiref", "bulk", "database", "installs", "paging", "plantree", "readme", "releaseview"},
		"policies":     {"database"},
		"policyapi":    {"apigen", "database", "flow", "installs", "orders", "paging", "policies"},
		"metricsapi":   {"apigen", "database", "installs", "paging"},
		"treediff":     {},
		"snapshot":     {"database", "treediff"},
		"timeline":     {"database", "treediff"},
		"timelineapi":  {"apigen", "apiref", "apps", "configdiff", "database", "installs", "paging", "snapshot", "stream", "timeline", "treediff"},
		"why":          {"flow"},
		"status":       {"why"},
		"releaseview":  {"orders"},
		"stream":       {"database"},
		"webhooks":     {"database", "keys", "stream"},
		"eventapi":     {"apigen", "database", "installs", "paging", "stream", "webhooks"},
		"statetree":    {"database", "keys", "recipient", "releaseview", "variables"},
		"settings":     {"database", "health", "keys", "orders"},
		"tend":         {"alertwatch", "database", "drift", "health", "keys", "recipient", "releaseview", "settings", "statetree"},
		"rollback":     {"apigen", "database", "flow", "installs", "releaseview", "why", "workflow"},
		"workflow":     {"approval", "clearance", "database", "destruction", "events", "flow", "foresight", "health", "keys", "orders", "policies", "releaseview", "roles", "statetree"},
	}
	seen := map[string]bool{}
	for _, p := range list(t, "./ctl-api/internal/...") {
		room := strings.TrimPrefix(p.ImportPath, rooms)
		may, ruled := below[room]
		seen[room] = true
		for _, path := range p.Imports {
			if other, ours := strings.CutPrefix(path, rooms); ours && ruled && !slices.Contains(may, other) {
				t.Errorf("%s imports %s; it may import %v", room, other, may)
			}
		}
		if slices.Contains(p.Imports, rooms+"workflow") && room != "api" && room != "rollback" { // both start workflows
			t.Errorf("%s imports the engine; what it needs of it belongs into a room of its own", room)
		}
	}
	for room := range below {
		if !seen[room] {
			t.Errorf("there is a rule for %s, which does not exist", room)
		}
	}
}

// A listed package is a package of ours with what it imports and everything it
// links.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// list asks Go about the packages that match a pattern. There must be some: a
// rule for nothing would hold forever.
func list(t *testing.T, pattern string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", pattern)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", pattern, err, stderr.Bytes())
	}
	var found []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list %s: %v", pattern, err)
		}
		found = append(found, p)
	}
	if len(found) == 0 {
		t.Fatalf("no package matches %s: %s", pattern, stderr.Bytes())
	}
	return found
}
