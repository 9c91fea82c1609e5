package rehearse

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	gosync "sync"

	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/appconfig"
)

// asked is something that a build or an engine would get from a host.
type asked struct {
	what  string // "source acme/web", as a line says it
	at    string // an address on the host
	parts []stage.Part
}

// askHosts asks the hosts of everything that the app is built from, all at once, and
// leaves out the parts whose host says nothing: their builds and engines would only
// wait for it, one after the other.
func (r *run) askHosts(ctx context.Context, mapped sync.SourceMap) {
	all := r.asked(mapped)
	why := make([]string, len(all))
	var asking gosync.WaitGroup
	for i, a := range all {
		asking.Go(func() {
			if host, silent := r.hosts.Silent(ctx, a.at); silent {
				why[i] = fmt.Sprintf("%s unreachable: the host %s does not answer", a.what, host)
			}
		})
	}
	asking.Wait()
	for i, a := range all {
		for _, part := range a.parts {
			if why[i] != "" {
				r.changes.Add(r.app, part, why[i])
			}
		}
	}
}

// asked lists sources that are not in the folder, and what sources in the folder name.
func (r *run) asked(mapped sync.SourceMap) (all []asked) {
	root := os.DirFS(r.folder)
	for _, src := range appconfig.Sources(r.app) {
		parts := stage.UsersOf(r.app, src.Name, src.Block)
		switch {
		case src.Kind == appconfig.SourceLocal:
			for what, at := range namedIn(root, src.Directory) {
				all = append(all, asked{what, at, parts})
			}
		case src.Repo == "" || src.Uploaded() || mapped.Has(src):
		case src.Kind == appconfig.SourceImage:
			all = append(all, asked{"source " + src.Repo, "oci://" + hostOfImage(src.Repo), parts})
		default:
			all = append(all, asked{"source " + src.Repo, src.Repo, parts})
		}
	}
	return all
}

// What modules and charts say of others that they need.
var (
	moduleCall = regexp.MustCompile(`(?s)\bmodule\s+"[^"]*"\s*\{.*?\bsource\s*=\s*"([^"]+)"`)
	dependency = regexp.MustCompile(`(?m)^\s*-?\s*repository:\s*["']?((?:https?|oci)://[^\s"']+)`)
)

// mostBytes is the largest file that is looked at, in bytes.
const mostBytes = 1 << 20

// namedIn lists the modules and charts from elsewhere that a directory of the folder
// names, with an address of each.
func namedIn(root fs.FS, dir string) map[string]string {
	found := map[string]string{}
	_ = fs.WalkDir(root, path.Clean(dir), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".tf" && path.Ext(name) != ".tofu" && d.Name() != "Chart.yaml" {
			return nil //nolint:nilerr // the sync reports what cannot be read
		}
		if info, err := d.Info(); err != nil || info.Size() > mostBytes {
			return nil //nolint:nilerr // see above
		}
		raw, err := fs.ReadFile(root, name)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		for _, m := range moduleCall.FindAllStringSubmatch(string(raw), -1) {
			if at := moduleAt(m[1]); at != "" {
				found["module "+m[1]] = at
			}
		}
		for _, m := range dependency.FindAllStringSubmatch(string(raw), -1) {
			found["source "+m[1]] = m[1]
		}
		return nil
	})
	return found
}

// moduleAt is an address on the host of a module; "" for one in the folder.
func moduleAt(source string) string {
	if strings.HasPrefix(source, ".") || strings.HasPrefix(source, "/") {
		return ""
	}
	if _, rest, ok := strings.Cut(source, "::"); ok {
		return rest
	}
	if strings.Contains(source, "://") || strings.Contains(source, "@") {
		return source
	}
	first, _, _ := strings.Cut(source, "/")
	if strings.Contains(first, ".") {
		return "https://" + first
	}
	return "https://" + publicRegistry
}
