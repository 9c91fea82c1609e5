package rehearse

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// mostRepairs bounds how often a folder is read, each time without what was wrong.
const mostRepairs = 10

// notInNames is what the names of apps have not.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// read reads the folder, and finds what cannot be tried for reasons that are known
// before anything is built. A definition that is wrong is left out and has failed; what
// is wrong with the folder as a whole is an error.
func (r *run) read(ctx context.Context) error {
	abs, err := filepath.Abs(r.folder)
	if err != nil {
		return err
	}
	mapped, err := sync.ReadSourceMap(r.sync.SourceMap, r.sync.SourceMapFile)
	if err != nil {
		return err
	}
	root := os.DirFS(abs)
	r.lost, r.broken = map[string]string{}, map[stage.Part]bool{}
	fetched, err := sync.ElsewhereWith(ctx, root, mapped, sync.FetchOptions{Say: r.Err, Hosts: &r.hosts, Lost: r.instead})
	if err != nil {
		return err
	}
	options := appconfig.LoadOptions{SkipSources: true, Fetched: fetched, AllowInvalidPolicies: true}
	// The sources in the folder say which outputs there are.
	withSources := options
	withSources.SkipSources = false
	app, found := check.Folder(root, withSources)
	if len(app.Origin.Files) == 0 {
		return r.cannot(found)
	}
	for _, d := range found {
		if d.Severity != place.Error {
			r.said = append(r.said, d)
		}
	}
	if r.sync.App == "" {
		const longest = 63 - len(suffix)
		name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(filepath.Base(abs)), "-"), "-")
		r.sync.App, r.own = strings.Trim(name[:min(len(name), longest)], "-")+suffix, true
	}
	r.app, r.judged = app, map[stage.Part]Line{}
	r.sync.AllowPolicies, r.sync.SkipSources, r.sync.Known = true, true, fetched
	r.changes = stage.Obstacles(app, r.lost)
	hopeless := stage.Hopeless(app, r.cluster)
	for _, part := range slices.Sorted(maps.Keys(hopeless)) {
		r.changes.Add(app, part, hopeless[part])
	}
	if r.client.OnThisMachine() {
		r.askHosts(ctx, mapped)
	}
	return r.repair(options)
}

// instead gives what stands in for a file that cannot be fetched.
func (r *run) instead(app *appconfig.App, wanted fetch.Wanted, result fetch.Result) fetch.Result {
	why := "source " + fetch.WithoutCredentials(wanted.Address) + " unreachable"
	if strings.Contains(result.Problem, "does not answer") {
		why += ": it " + result.Problem
	}
	r.lost[wanted.Address] = why
	return fetch.Result{Contents: []byte(stage.InPlaceOf(app, wanted))}
}

// repair leaves out what is wrong until the rest can be synced. Each definition that is
// left out for that has failed, with what is wrong with it.
func (r *run) repair(options appconfig.LoadOptions) error {
	var last []place.Diagnostic
	for range mostRepairs {
		found, staged, err := r.wrong(options)
		if err != nil || len(found) == 0 {
			return err
		}
		again := false
		blamed := map[stage.Part]bool{} // a definition may be wrong in several ways
		for _, d := range found {
			part := stage.Blame(staged, d)
			if part != "" && blamed[part] {
				continue
			}
			blamed[part] = true
			again = r.blame(part, d) || again
		}
		last = found
		if !again {
			break
		}
	}
	return r.cannot(last)
}

// wrong stages the folder, and says what is wrong with it.
func (r *run) wrong(options appconfig.LoadOptions) ([]place.Diagnostic, *appconfig.App, error) {
	dir, err := os.MkdirTemp("", "berth-rehearsal-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing of it is needed again
	if err := stage.Write(r.folder, dir, r.app, r.changes); err != nil {
		return nil, nil, err
	}
	app, found := check.Folder(os.DirFS(dir), options)
	return slices.DeleteFunc(found, func(d place.Diagnostic) bool { return d.Severity != place.Error }), app, nil
}

// blame leaves out the definition that is wrong, or else its file; false when there is
// nothing more to leave out.
func (r *run) blame(part stage.Part, d place.Diagnostic) bool {
	if part != "" && slices.ContainsFunc(stage.Blocks(r.app), func(b stage.Block) bool { return b.Part == part }) && r.changes.Add(r.app, part, d.Message) {
		r.broken[part] = true
		r.judged[part] = Line{Verdict: Failed, Why: d.Message}
		r.screen.Print(fmt.Sprintf("%s  %s: %s: %s", r.Now().Format("15:04:05"), part, Failed, d.Unrated()))
		return true
	}
	if !r.changes.AddFile(r.app, d.File, d.Message) {
		return false
	}
	r.broken[stage.Part(d.File)] = true
	r.screen.Print(fmt.Sprintf("%s  %s: %s: %s", r.Now().Format("15:04:05"), d.File, Failed, d.Unrated()))
	return true
}

// cannot is the error of a folder that is no app.
func (r *run) cannot(found []place.Diagnostic) error {
	for _, d := range found {
		if d.Severity == place.Error {
			output.Println(r.Err, d)
		}
	}
	return fmt.Errorf("cannot rehearse the app folder %s: %s", r.folder, findings.Errors(found))
}
