package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/runner/agent/job"
	"github.com/berth-dev/berth/runner/agent/launcher"
	"github.com/berth-dev/berth/runner/agent/mirrors"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/users"
)

// isolation is how engines are kept apart on this machine: from the agent, and
// from each other.
type isolation struct {
	engines process.Isolation
	users   *users.Pool
	sight   launcher.Sight
	maps    *process.UserMaps
	limits  process.Limits

	// weak says why vendor code is not kept apart from the agent's keys, "" when
	// it is; notes are what else people should know, for facts and status.
	weak  string
	notes []string
	// unlimited says why engines have no limits, "" when they have.
	unlimited string
}

// text describes the isolation, for people.
func (i *isolation) text() string {
	parts := []string{}
	switch {
	case i.weak != "":
		parts = append(parts, i.weak)
	case i.engines.OwnUsers:
		parts = append(parts, fmt.Sprintf("each engine has a user namespace and a mount namespace of its own; all run as user %d, the runner's", os.Geteuid()))
	case i.engines.OwnUser():
		parts = append(parts, "each engine has a user and a mount namespace of its own")
	case i.engines.Hidden:
		parts = append(parts, fmt.Sprintf("each engine has a mount namespace of its own; all run as user %d", i.engines.UID))
	case i.engines.UID == os.Geteuid():
		parts = append(parts, fmt.Sprintf("each engine has a pod of its own, as user %d, the runner's", i.engines.UID))
	default:
		parts = append(parts, fmt.Sprintf("each engine has a pod of its own, as user %d", i.engines.UID))
	}
	return strings.Join(append(parts, i.notes...), "; ")
}

// limitsText describes the limits, for people.
func (i *isolation) limitsText() string {
	if i.unlimited != "" {
		return "none: " + i.unlimited
	}
	text := fmt.Sprintf("memory %d bytes", i.limits.MemoryBytes)
	if i.limits.PIDs == 0 {
		return text + ", processes as the cluster limits them"
	}
	return fmt.Sprintf("%s, %d processes", text, i.limits.PIDs)
}

// isolate finds out by trying how this machine lets engines be kept apart. The
// data directory is locked.
func (a *agent) isolate() error {
	i := &a.iso
	if a.cfg.Engines == EnginesJobs {
		i.engines = process.Isolation{UID: a.cfg.EngineUID, GID: a.cfg.EngineUID}
		if i.limits.MemoryBytes = a.cfg.EngineMemory; a.cfg.EngineLimits == LimitsOff {
			i.limits, i.unlimited = process.Limits{}, "--engine-limits is off"
		}
		return nil
	}
	if err := a.limit(); err != nil {
		return err
	}
	switch root := os.Geteuid() == 0; {
	case a.cfg.Pod != nil:
		i.weak = "engines share the pod of the agent (--engines process); with --engines jobs each has its own"
	case a.cfg.EngineUIDs == users.Off:
		i.weak = "--engine-uids is off"
	default:
		hide := a.hide
		if !root {
			hide = a.hideFromItself
		}
		err := hide()
		if err == nil {
			return nil
		}
		if i.weak = "engines cannot be kept apart here: " + err.Error(); !root {
			i.weak = "the runner is not root, and user namespaces cannot be used here, so engines share its user: " + err.Error()
		}
	}
	*i = isolation{weak: i.weak, limits: i.limits, unlimited: i.unlimited}
	if os.Geteuid() == 0 {
		i.engines = process.Isolation{UID: a.cfg.EngineUID, GID: a.cfg.EngineUID, PIDNamespace: process.CanSeparate(a.cfg.Executable)}
	}
	return nil
}

// limit finds out whether engines can be held to their limits. What somebody
// asked for has to be possible; a default may be missing, and is said to be.
func (a *agent) limit() error {
	i := &a.iso
	if a.cfg.EngineLimits == LimitsOff {
		i.unlimited = "--engine-limits is off"
		return nil
	}
	wanted := process.Limits{MemoryBytes: a.cfg.EngineMemory, PIDs: a.cfg.EnginePIDs}
	err := process.CanLimit(wanted)
	switch {
	case err == nil:
		i.limits = wanted
	case a.cfg.EngineLimits == LimitsRequired:
		return fmt.Errorf("the limits of engines cannot be set here: %w: let the runner write control groups, or use --engine-limits %s", err, LimitsOff)
	default:
		i.unlimited = "control groups cannot be used here: " + err.Error()
	}
	return nil
}

// hide tries engines that see of the data directory their own part only, each
// as a user of its own.
func (a *agent) hide() error {
	r, err := users.ParseRange(a.cfg.EngineUIDs)
	if err != nil {
		return err
	}
	i := &a.iso
	if i.users, err = users.Open(users.Dir, r, a.cfg.EngineUID); err != nil {
		return err
	}
	i.sight = launcher.Sight{Data: a.dir.Path()}
	i.sight.Shown = a.cfg.Update.shown(a.dir.Path())
	i.sight.Private, i.sight.Keep = process.Private(a.neededByEngines()...)
	i.engines = process.Isolation{PIDNamespace: true, Hidden: true}

	try, err := a.tryFolder()
	if err != nil {
		return err
	}
	defer try.remove()
	owner, err := scratchOwner(a.dir.Install(), r.Owner())
	if err != nil {
		return err
	}
	err = a.try(try, owner)
	if !errors.Is(err, launcher.ErrNoIDMap) {
		if err == nil {
			i.maps = process.NewUserMaps(a.cfg.Executable, owner)
		}
		return err
	}
	// One user for all engines of this runner then, who has the scratch. They
	// still see nothing of each other.
	i.notes = append(i.notes, err.Error())
	i.engines.UID = a.cfg.EngineUID
	if i.engines.UID == 0 {
		if i.engines.UID, err = i.users.Take(a.dir.Path()); err != nil {
			return err
		}
	}
	i.engines.GID = i.engines.UID
	return a.try(try, i.engines.UID)
}

// hideFromItself tries engines that have the agent's own user, in a user
// namespace of theirs, and see of the machine only what they need.
func (a *agent) hideFromItself() error {
	i := &a.iso
	i.sight = launcher.Sight{Data: a.dir.Path()}
	i.sight.Shown = a.cfg.Update.shown(a.dir.Path())
	needed := a.pathsOfEngines()
	if len(i.sight.Shown) == 0 {
		needed = append(needed, a.cfg.Engine)
	}
	if a.cfg.Terraform != "" {
		needed = append(needed, a.cfg.Terraform)
	}
	if err := process.Narrow(&i.sight, os.Geteuid(), needed...); err != nil {
		return err
	}
	i.engines = process.Isolation{PIDNamespace: true, Hidden: true, OwnUsers: true}
	if groups := otherGroups(); len(groups) > 0 {
		i.notes = append(i.notes, fmt.Sprintf("engines stay in groups %s of its user", strings.Join(groups, ", ")))
	}
	try, err := a.tryFolder()
	if err != nil {
		return err
	}
	defer try.remove()
	return a.try(try, 0)
}

// otherGroups are those of the agent but for its first. Without root nobody can
// leave a group.
func otherGroups() []string {
	all, _ := os.Getgroups()
	var others []string
	for _, gid := range all {
		if gid != os.Getegid() {
			others = append(others, strconv.Itoa(gid))
		}
	}
	return others
}

// neededByEngines are the paths that engines must be able to see.
func (a *agent) neededByEngines() []string {
	var needed []string
	if len(a.cfg.Update.shown(a.dir.Path())) == 0 {
		needed = append(needed, filepath.Dir(a.cfg.Engine))
	}
	if a.cfg.Terraform != "" {
		needed = append(needed, filepath.Dir(a.cfg.Terraform))
	}
	return append(needed, a.pathsOfEngines()...)
}

// pathsOfEngines are where engines look for what they are not given.
func (a *agent) pathsOfEngines() []string {
	needed := filepath.SplitList(a.cfg.SearchPath)
	needed = append(needed, filepath.SplitList(a.cfg.EngineSees)...)
	for _, mirror := range []string{a.cfg.TerraformMirror, a.cfg.OpenTofuMirror, a.cfg.ProviderMirror} {
		if filepath.IsAbs(mirror) {
			needed = append(needed, mirror)
		}
	}
	return append(needed, mirrors.EngineFiles()...)
}

// tryFolder is a folder like that of a job, with a scratch next to it.
type tryFolder struct {
	root *os.Root
	path string
}

const tryName = "try"

func (a *agent) tryFolder() (tryFolder, error) {
	t := tryFolder{path: filepath.Join(a.dir.Path(), tryName)}
	root, err := os.OpenRoot(a.dir.Path())
	if err != nil {
		return t, err
	}
	t.root = root
	if err := root.RemoveAll(tryName); err != nil {
		return t, errors.Join(err, root.Close())
	}
	for _, dir := range []string{tryName, tryName + "/engine", tryName + "/engine/in", tryName + "/engine/out", tryName + "/scratch"} {
		if err := root.Mkdir(dir, 0o700); err != nil {
			return t, errors.Join(err, root.Close())
		}
	}
	return t, nil
}

func (t tryFolder) remove() {
	_ = t.root.RemoveAll(tryName)
	_ = t.root.Close()
}

// try starts what an engine would be, up to its first instruction. owner is the
// scratch's on disk.
func (a *agent) try(t tryFolder, owner int) error {
	i := &a.iso
	iso := i.engines
	if iso.OwnUser() {
		uid, err := i.users.Take(t.path)
		if err != nil {
			return err
		}
		defer i.users.Give(uid, t.path)
		iso.UID, iso.GID = uid, uid
	}
	if !iso.OwnUsers {
		if err := errors.Join(t.root.Lchown(tryName+"/engine", iso.UID, iso.GID), t.root.Lchown(tryName+"/scratch", owner, owner)); err != nil {
			return err
		}
	}
	sight := job.Shape(i.sight, filepath.Join(t.path, "engine"))
	sight.Scratch = filepath.Join(t.path, "scratch")
	spec := process.Spec{
		Path: a.cfg.Engine, Dir: sight.Folder, Env: []string{}, Isolation: iso, Launcher: a.cfg.Executable, Sight: &sight,
	}
	if owner != iso.UID {
		maps := process.NewUserMaps(a.cfg.Executable, owner)
		defer maps.Close()
		var err error
		if spec.ScratchMap, err = maps.For(iso.UID); err != nil {
			return fmt.Errorf("%w (%w)", launcher.ErrNoIDMap, err)
		}
	}
	return process.Try(spec)
}

// scratchOwner is the user who owns the scratch on disk: the present owner,
// else the given user.
func scratchOwner(dir string, otherwise int) (int, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return otherwise, nil
	}
	if err != nil {
		return 0, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
		return int(stat.Uid), nil
	}
	return otherwise, nil
}

// makeInstallDir makes the durable scratch of the install, the engine's own.
func (a *agent) makeInstallDir() error {
	data, err := os.OpenRoot(a.dir.Path())
	if err != nil {
		return fmt.Errorf("install directory: %w", err)
	}
	defer func() { _ = data.Close() }()
	name := filepath.Base(a.dir.Install())
	if err := data.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("install directory: %w", err)
	}
	owner := a.iso.engines.UID
	if a.iso.maps != nil {
		owner = a.iso.maps.Owner()
	}
	if owner == 0 {
		return nil
	}
	if err := own(data, name, owner); err != nil {
		return fmt.Errorf("install directory: %w", err)
	}
	return nil
}

// own gives a directory to a user, unless it has it already: what is in it
// first, by descriptor and without following symlinks, the directory itself
// last.
func own(parent *os.Root, name string, uid int) error {
	info, err := parent.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", name)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == uid {
		return nil
	}
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	err = fs.WalkDir(dir.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		return dir.Lchown(name, uid, uid)
	})
	if err != nil {
		return err
	}
	return dir.Lchown(".", uid, uid)
}
