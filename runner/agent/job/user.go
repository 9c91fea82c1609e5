package job

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/launcher"
	"github.com/berth-dev/berth/runner/agent/plugins"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/trees"
	"github.com/berth-dev/berth/runner/agent/users"
)

// limitsRemedy is what to do about limits that cannot be set.
const limitsRemedy = "let the runner write its control groups, or set its engine_limits to off (--engine-limits, BERTH_ENGINE_LIMITS) to run engines without limits"

// confine takes what the engine is to be held by: a user and a control group.
// It comes first, while nothing is used up yet.
func (j *job) confine() error {
	e := j.deps.Engine
	iso := e.Isolation
	if iso.OwnUser() {
		uid, err := e.Users.Take(j.dir.Path)
		if errors.Is(err, users.ErrNone) {
			return refuse(jobspec.OutcomeNotStarted, "give the runner a larger range of users with --engine-uids", "%v", err)
		}
		if err != nil {
			return err
		}
		iso.UID, iso.GID = uid, uid
	}
	if iso.NoNetwork = plugins.Confined(j.spec); iso.NoNetwork && (e.InPods || os.Geteuid() != 0 && !iso.OwnUsers) {
		return refuse(jobspec.OutcomeRefused, "run the runner on a machine, as root or with user namespaces", "this runner cannot take the network away from a plugin")
	}
	hosts, err := plugins.Hosts(j.spec)
	if err != nil {
		return refuse(jobspec.OutcomeRefused, "correct hosts in [berth.plugin] of the component, then sync and deploy", "%v", err)
	}
	if err := j.findPaths(iso); err != nil {
		return err
	}
	iso.Loopback = iso.NoNetwork && len(hosts) > 0
	j.mu.Lock()
	j.attempt.Isolation = iso // on disk with the next phase
	j.mu.Unlock()
	if e.InPods { // a pod has limits of its own
		return nil
	}
	if j.group, err = process.NewGroup(j.attempt.Name(), e.Limits); err != nil {
		return refuse(jobspec.OutcomeFailed, limitsRemedy, "the limits of the engine cannot be set: %v", err)
	}
	return nil
}

// release gives back what confine took. The engine is over.
func (j *job) release() {
	process.FindGroup(j.attempt.Name()).Remove()
	if iso := j.attempt.Isolation; iso.Hidden && j.deps.Engine.Users != nil {
		j.deps.Engine.Users.Give(iso.UID, j.dir.Path)
	}
}

// sight is what the engine sees of the data directory.
func (j *job) sight() *launcher.Sight {
	s := Shape(j.deps.Engine.Sight, j.dir.Engine())
	if plugins.SeesInstall(j.spec) {
		s.Scratch = j.deps.Dir.Install()
	}
	for _, p := range j.paths {
		s.Paths = append(s.Paths, p.Path)
	}
	s.Shown = slices.Concat(s.Shown, j.fetched(), j.deps.Engine.BuildKit.Shown(j.spec.Kind), j.deps.Engine.Providers.Shown(j.spec.TerraformModule != nil))
	return &s
}

// Shape adds to a sight the folder of a job. Where the engine's user owns it, it
// is all read-only but for what the engine leaves there.
func Shape(s launcher.Sight, folder string) launcher.Sight {
	if s.Folder = folder; s.Strict {
		s.Open = []string{"out", "work"}
	} else {
		s.Closed = []string{"in"}
	}
	return s
}

// expose gives the folder to the engine's user: what it is to write to becomes
// its own, what it is given stays root's. The folder itself is opened last, and
// everything is done by descriptor below it without following a symlink; so
// nobody but root can be in it while owners change.
func (j *job) expose() error {
	iso := j.attempt.Isolation
	if iso.UID == 0 {
		return nil
	}
	folder, err := os.OpenRoot(j.dir.Engine())
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	err = fs.WalkDir(folder.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case name == "in/kubeconfig", name == cluster.TokenFile("in/kubeconfig"): // its own and private, as tools want it; in/ is read-only
			return folder.Lchown(name, iso.UID, iso.GID)
		case name == "out" || name == "work" || len(name) > len("work/") && name[:len("work/")] == "work/":
			return folder.Lchown(name, iso.UID, iso.GID)
		}
		if trees.Shared(entry) {
			return nil // everybody may read it, and nobody but root changes it
		}
		return datadir.Lend(folder, name, entry, iso.GID)
	})
	if err != nil {
		return err
	}
	if err := folder.Lchown(".", -1, iso.GID); err != nil {
		return err
	}
	return folder.Chmod(".", datadir.ModeOpenDir)
}
