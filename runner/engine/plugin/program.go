package plugin

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container"
	"github.com/berth-dev/berth/pkg/plugin/grant"
	"github.com/berth-dev/berth/runner/engine/job"
)

// command is the plugin's, ready to be started in a process group of its own.
func (p *admitted) command(ctx context.Context, dirs plugin.Dirs) (*exec.Cmd, error) {
	j := p.job
	env := plugin.Environ(dirs, jobspec.Spec{
		Version: plugin.Contract, Operation: j.Spec.Operation, Destroy: j.Spec.Destroy, InstallID: j.Spec.InstallID, Resource: j.Spec.Resource,
	})
	if p.image == nil {
		cmd := exec.Command(p.path, "run", p.dir()) //nolint:noctx // it is asked to end, not killed, when ctx ends
		cmd.Dir, cmd.Env, cmd.SysProcAttr = p.dir(), env, &syscall.SysProcAttr{Setpgid: true}
		return cmd, nil
	}
	room := container.Room{Root: j.Work("image"), Open: []string{dirs.Job}, Hosts: p.given.Network}
	if dirs.Install != "" {
		room.Open = append(room.Open, dirs.Install)
	}
	var err error
	if room.Paths, err = grant.ParsePaths(p.given.Paths); err != nil {
		return nil, err
	}
	err = p.image.Unpack(ctx, room.Root)
	switch {
	case errors.Is(err, oci.ErrUnsafeArchive):
		return nil, job.Refusef("report this to the plugin's author", "%s: %v", j.Subject(), err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", j.Subject(), err)
	}
	j.Logf("image %s", p.image.Digest)
	return p.image.Command(room, dirs.Job, env)
}

// notStarted is why the plugin was not.
func (p *admitted) notStarted(err error) error {
	if p.image == nil {
		return fmt.Errorf("start plugin %s: %w", p.manifest.Type, err)
	}
	if err = container.Why(err); errors.Is(err, container.ErrNotHere) {
		return job.Refusef("run the runner as root on a machine whose kernel gives user namespaces; or use a version of the plugin with executables", "%s: the plugin is an image: %v", p.job.Subject(), err)
	}
	return fmt.Errorf("start the image of plugin %s: %w", p.manifest.Type, err)
}

// checkImage finds early what runners refuse of a plugin's image: it needs one for
// this platform, or the other that runners have.
func checkImage(ctx context.Context, dir string, m plugin.Manifest) error {
	var errs []error
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := container.Open(ctx, dir, m, runtime.GOOS+"/"+arch)
		if err == nil {
			return image.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
