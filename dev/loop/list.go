package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// roots are the packages that executables are made of; dev/scripts/executables.sh
// has the same (TestRootsAreTheExecutables).
var roots = map[string]string{
	"github.com/berth-dev/berth/cli/cmd/berth":        "berth",
	"github.com/berth-dev/berth/services/ctl-api":     "berth-ctl-api",
	"github.com/berth-dev/berth/services/runner-api":  "berth-runner-api",
	"github.com/berth-dev/berth/services/builder":     "berth-builder",
	"github.com/berth-dev/berth/services/log-ingest":  "berth-log-ingest",
	"github.com/berth-dev/berth/runner/cmd/runner":    "berth-runner",
	"github.com/berth-dev/berth/runner/cmd/engine":    "berth-engine",
	"github.com/berth-dev/berth/pkg/cmd/berth-verify": "berth-verify",
	"github.com/berth-dev/berth/cli/internal/up":      supervisor,
}

// listedPackage is what `go list` says of a package.
type listedPackage struct {
	ImportPath, Dir string
	EmbedPatterns   []string
	Deps            []string
}

// list asks Go what the executables are made of.
func list(ctx context.Context, root string) (sources, error) {
	args := append([]string{"list", "-deps", "-json=ImportPath,Dir,EmbedPatterns,Deps"}, slices.Sorted(maps.Keys(roots))...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return sources{}, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	packages, err := decodeList(bytes.NewReader(out))
	if err != nil {
		return sources{}, fmt.Errorf("go list: %w", err)
	}
	return sourcesOf(root, packages), nil
}

func decodeList(r io.Reader) (packages []listedPackage, err error) {
	for decoder := json.NewDecoder(r); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// sourcesOf keeps the packages below root, with the executables that they are in.
func sourcesOf(root string, packages []listedPackage) sources {
	in := map[string][]string{} // import path → executables
	out := sources{packages: map[string]pkg{}}
	for _, p := range packages {
		executable, ok := roots[p.ImportPath]
		if !ok {
			continue
		}
		for _, path := range append(p.Deps, p.ImportPath) {
			in[path] = append(in[path], executable)
		}
		if executable != supervisor {
			out.all = append(out.all, executable)
		}
	}
	slices.Sort(out.all)
	for _, p := range packages {
		folder, err := filepath.Rel(root, p.Dir)
		if err != nil || !filepath.IsLocal(folder) {
			continue // Go's own, or another module's
		}
		executables := in[p.ImportPath]
		slices.Sort(executables)
		out.packages[filepath.ToSlash(folder)] = pkg{executables: executables, embeds: len(p.EmbedPatterns) > 0}
	}
	return out
}
