package plugin

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container"
	"github.com/berth-dev/berth/runner/engine/build"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Build makes the artifact of a plugin: its directory as it is.
func Build(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	return build.Folder{What: "plugin", Tool: "berth plugins test", Check: func(dir string) error { return checkFolder(ctx, dir) }}.Build(ctx, j)
}

// checkFolder finds early what runners refuse. Who has signed counts there.
func checkFolder(ctx context.Context, dir string) error {
	m, err := plugin.ReadManifest(os.DirFS(dir))
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, plugin.SignatureFile)); err != nil {
		return fmt.Errorf("it is not signed: there is no %s (`berth plugins sign` makes it)", plugin.SignatureFile)
	}
	if m.Image != "" {
		return checkImage(ctx, dir, m)
	}
	for _, file := range m.Executables {
		if err := os.Chmod(filepath.Join(dir, filepath.FromSlash(file)), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// admitted is a plugin that may run.
type admitted struct {
	job      *job.Job
	given    jobspec.Plugin
	manifest plugin.Manifest
	// path is the executable, "" for a plugin that is an image.
	path  string
	image *container.Image
}

// admit checks the plugin of a job. Whatever is not as it was signed or granted is
// refused before one byte of it runs.
func admit(ctx context.Context, j *job.Job) (*admitted, error) {
	const remedy = "build the plugin again from what its author has signed, then sync and deploy"
	p := &admitted{job: j, given: *j.Spec.Plugin}
	dir := os.DirFS(j.In("artifact"))
	if _, err := plugin.Verify(p.given.Signer, dir); err != nil {
		return nil, job.Refusef(remedy, "%s: %v", j.Subject(), err)
	}
	var err error
	if p.manifest, err = plugin.ReadManifest(dir); err != nil {
		return nil, job.Refusef(remedy, "%s: %v", j.Subject(), err)
	}
	if p.manifest.Type != p.given.Type {
		return nil, job.Refusef("name the directory of the right plugin", "%s: the plugin deploys components of type %q, this one is of type %q", j.Subject(), p.manifest.Type, p.given.Type)
	}
	granted := plugin.Granted(p.given)
	if err := granted.Check(); err != nil {
		return nil, job.Refusef("correct [berth.plugin] of the component", "%s: what the component grants its plugin: %v", j.Subject(), err)
	}
	if missing := p.manifest.Permissions.Without(granted); len(missing) > 0 {
		return nil, job.Refusef("grant it in [berth.plugin] of the component, or use another version", "%s: the plugin asks for %s, which the component does not grant",
			j.Subject(), plugin.List(missing, " and "))
	}
	if err := p.program(ctx); err != nil {
		return nil, job.Refusef("use a version of the plugin for this platform", "%s: %v", j.Subject(), err)
	}
	if p.given.Network {
		return p, nil
	}
	return p, p.noNetwork()
}

// program finds what of the plugin runs on this platform.
func (p *admitted) program(ctx context.Context) error {
	const platform = runtime.GOOS + "/" + runtime.GOARCH
	if p.manifest.Image == "" {
		file, err := p.manifest.Executable(platform)
		p.path = p.job.In("artifact", filepath.FromSlash(file))
		return err
	}
	image, err := container.Open(ctx, p.job.In("artifact"), p.manifest, platform)
	if err != nil {
		return err
	}
	p.image = &image
	return nil
}

// close lets go of what admit opened.
func (p *admitted) close() {
	if p.image != nil {
		_ = p.image.Close()
	}
}

// noNetwork refuses where the agent has not taken the network away: all of it, or all but
// an own loopback for a plugin that may reach certain hosts.
func (p *admitted) noNetwork() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	taken := true
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && (len(p.given.Hosts) == 0 || i.Flags&net.FlagLoopback == 0) {
			taken = false
		}
	}
	if taken && len(p.given.Hosts) > 0 {
		if taken, err = alone(); err != nil {
			return err
		}
	}
	if !taken {
		return job.Refusef("run the runner as root, or with user namespaces; or grant the plugin the network", "%s: this runner cannot take the network away from a plugin", p.job.Subject())
	}
	if len(p.given.Hosts) == 0 {
		return nil
	}
	if info, err := os.Lstat(p.hostsSocket()); err != nil || info.Mode().Type() != os.ModeSocket {
		return job.Refusef("update the runner", "%s: this runner gives a plugin no way to certain hosts", p.job.Subject())
	}
	return nil
}

// config renders and completes the component's own keys.
func (p *admitted) config() (map[string]any, error) {
	given := p.given.Config
	if given == nil {
		given = map[string]any{}
	}
	rendered := make(map[string]any, len(given))
	for name, value := range given {
		v, err := p.render(name, value)
		if err != nil {
			return nil, err
		}
		rendered[name] = v
	}
	whole, problems := p.manifest.Config.Complete(rendered, nil)
	if len(problems) > 0 {
		texts := make([]string, len(problems))
		for i, problem := range problems {
			texts[i] = problem.String()
		}
		return nil, job.Wrongf("see the plugin's plugin.json for its keys", "%s: its config does not fit plugin %s %s: %s",
			p.job.Subject(), p.manifest.Type, p.manifest.Version, strings.Join(texts, "; "))
	}
	return whole, nil
}

// render keeps the shape of a value that is nothing but one path.
func (p *admitted) render(name string, value any) (any, error) {
	if text, ok := value.(string); ok && interpolate.IsTemplate(text) {
		if v, alone, err := p.job.RenderValue(name, text); alone {
			return v, err
		}
	}
	return p.job.RenderTree(name, value)
}
