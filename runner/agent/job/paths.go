package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin/grant"
	"github.com/berth-dev/berth/runner/agent/launcher"
	"github.com/berth-dev/berth/runner/agent/plugins"
	"github.com/berth-dev/berth/runner/agent/process"
)

// shownPath is what a plugin sees of the machine, and whose it is on disk.
type shownPath struct {
	launcher.Path
	owner int
}

// findPaths looks for what the plugin of a job is shown of the machine. The launcher
// looks again, and follows no symlink there: this is to say early and clearly what is
// wrong.
func (j *job) findPaths(iso process.Isolation) error {
	granted, err := plugins.Paths(j.spec)
	if err != nil {
		return refuse(jobspec.OutcomeRefused, "correct paths in [berth.plugin] of the component, then sync and deploy", "%v", err)
	}
	if len(granted) > 0 && !iso.Hidden {
		return refuse(jobspec.OutcomeRefused, "run the runner on a machine, as root or with user namespaces", "this runner cannot show a plugin single paths")
	}
	j.paths = nil
	for _, p := range granted {
		if own := meetsOwn(p, append([]string{j.deps.Dir.Path()}, j.deps.Engine.Own...)); own != "" {
			return refuse(jobspec.OutcomeRefused, "grant the plugin another path", "path %s: %s is the runner's own", p, own)
		}
		shown, err := j.findPath(p, iso)
		if err != nil {
			return err
		}
		j.paths = append(j.paths, shown)
	}
	return nil
}

// meetsOwn says which of the runner's own places a path is, is in, or is around.
func meetsOwn(p grant.Path, own []string) string {
	for _, place := range own {
		resolved, err := filepath.EvalSymlinks(place)
		if place != "" && (p.Meets(place) || err == nil && p.Meets(resolved)) {
			return place
		}
	}
	return ""
}

func (j *job) findPath(p grant.Path, iso process.Isolation) (shownPath, error) {
	shown := shownPath{Path: launcher.Path{Name: p.Name, Write: p.Write}}
	info, err := os.Lstat(p.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return shown, refuse(jobspec.OutcomeRefused, "make it, for the user who is to own what the plugin writes there", "path %s is not there on the runner's machine", p)
	}
	if err != nil {
		return shown, refuse(jobspec.OutcomeRefused, "let the runner's user get there", "path %s: %v", p, err)
	}
	resolved, err := filepath.EvalSymlinks(p.Name)
	switch {
	case err == nil && resolved != p.Name:
		return shown, refuse(jobspec.OutcomeRefused, "grant "+resolved+" if that is meant", "path %s: a symlink leads from it to %s", p, resolved)
	case !info.IsDir() && !info.Mode().IsRegular():
		return shown, refuse(jobspec.OutcomeRefused, "grant a file or a directory", "path %s is neither a file nor a directory", p)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		shown.owner = int(stat.Uid)
	}
	switch {
	case iso.UID == 0 || shown.owner == iso.UID: // as it is on disk
	case !p.Write:
		if !forOthers(info) {
			return shown, refuse(jobspec.OutcomeRefused, "let others read it (chmod -R o+rX "+p.Name+"), or grant it to be written", "path %s: a plugin reads as any other user, and these may not", p)
		}
	case shown.owner == 0:
		return shown, refuse(jobspec.OutcomeRefused, "give it to a user of its own (chown), or grant it read-only", "path %s is root's, and no plugin writes files of root's", p)
	case j.deps.Engine.ScratchMaps == nil:
		return shown, refuse(jobspec.OutcomeRefused, fmt.Sprintf("give it to user %d (chown), as whom engines run here, or grant it read-only", iso.UID),
			"path %s cannot be shown as the plugin's own on this machine", p)
	}
	return shown, nil
}

// forOthers says whether everybody may read a file, or look into a directory.
func forOthers(info fs.FileInfo) bool {
	need := fs.FileMode(0o004)
	if info.IsDir() {
		need = 0o005
	}
	return info.Mode().Perm()&need == need
}

// pathMaps opens, for each of the paths, how it appears as the engine's own; nil for one
// that stays as it is on disk. They are to be closed.
func (j *job) pathMaps(uid int) (maps []*os.File, end func(), err error) {
	var all []*process.UserMaps
	end = func() {
		for _, m := range all {
			_ = m.Close()
		}
	}
	maps = make([]*os.File, len(j.paths))
	for i, p := range j.paths {
		if !p.Write || uid == 0 || p.owner == uid {
			continue
		}
		m := process.NewUserMaps(j.deps.Engine.Launcher, p.owner)
		all = append(all, m)
		if maps[i], err = m.For(uid); err != nil {
			break
		}
	}
	return maps, end, err
}
