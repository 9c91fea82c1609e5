package pulumi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/build"
	"github.com/berth-dev/berth/runner/engine/job"
)

// built is where the executable of a program in Go is put in its artifact.
const built = ".berth-program"

// Build packs the folder of a program, such that the customer's side needs neither a
// compiler nor a registry. One in Go is compiled, unless its Pulumi.yaml names an
// executable. One for Node.js gets its node_modules, unless it brings them. Of other
// languages the folder is taken as it is: what the program needs must be in it.
func Build(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	return build.Folder{
		What: "pulumi program", Tool: "pulumi preview",
		Check: func(dir string) error { return prepare(ctx, j, dir) },
	}.Build(ctx, j)
}

func prepare(ctx context.Context, j *job.Job, dir string) error {
	p, err := readProject(dir)
	if err != nil {
		return err
	}
	switch {
	case p.runtime() == "nodejs":
		return install(ctx, j, dir)
	case p.runtime() != "go":
		j.Logf("runtime %s: the folder is packed as it is", p.runtime())
		return nil
	case p.binary() != "":
		return executable(dir, p.binary())
	}
	return compile(ctx, j, dir, p)
}

// executable checks that a program is a file of the folder which can be run.
func executable(dir, name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("options.binary %q is outside of the folder", name)
	}
	info, err := os.Lstat(filepath.Join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("options.binary names %q, which is not in the folder", name)
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("options.binary names %q, which is not an executable file", name)
	}
	return nil
}

// compile builds the program for the machine that it is built on, and has
// Pulumi.yaml name the result.
func compile(ctx context.Context, j *job.Job, dir string, p project) error {
	env, err := j.BaseEnv()
	if err != nil {
		return err
	}
	compiler, err := lookPath("go", env["PATH"])
	if err != nil {
		return errors.New("the program is in Go, and there is no go on the machine that builds it: put Go there, or build the program yourself and name it in Pulumi.yaml as runtime.options.binary")
	}
	env["CGO_ENABLED"], env["GOFLAGS"] = "0", "-mod=readonly"
	if there(dir, "vendor/modules.txt") {
		env["GOFLAGS"] = "-mod=vendor" // nothing is downloaded
	}
	for _, name := range []string{"GOPROXY", "GONOSUMDB", "GOSUMDB", "GOPRIVATE", "GOMODCACHE", "GOCACHE"} {
		if v := j.Env[name]; v != "" {
			env[name] = v
		}
	}
	cmd := tool(exec.CommandContext(ctx, compiler, "build", "-trimpath", "-buildvcs=false", "-o", built, "."), dir, env)
	said, kept := tee(j.Stderr)
	cmd.Stdout, cmd.Stderr = j.Stdout, said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, compilerSays(kept.String()))
	}
	raw, err := os.ReadFile(filepath.Join(dir, p.file))
	if err != nil {
		return err
	}
	var whole map[string]any
	if err := yaml.Unmarshal(raw, &whole); err != nil {
		return err
	}
	options := map[string]any{}
	if object, ok := whole["runtime"].(map[string]any); ok {
		if given, ok := object["options"].(map[string]any); ok {
			options = given
		}
	}
	options["binary"] = built
	whole["runtime"] = map[string]any{"name": "go", "options": options}
	if raw, err = yaml.Marshal(whole); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, p.file), raw, 0o600)
}

// compilerSays is the first line of what a compiler wrote that is no heading and
// tells of no download.
func compilerSays(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go: downloading ") {
			return line
		}
	}
	return "it does not say why"
}

// tool makes a command one of a build: all that it starts ends with it.
func tool(cmd *exec.Cmd, dir string, env map[string]string) *exec.Cmd {
	cmd.Dir, cmd.Env = dir, job.Environ(env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// there says whether a folder has a file.
func there(dir, name string) bool {
	info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
	return err == nil && info.Mode().IsRegular()
}

// lookPath finds an executable in a PATH that is not the engine's own.
func lookPath(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if at := filepath.Join(dir, name); filepath.IsAbs(at) {
			if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return at, nil
			}
		}
	}
	return "", exec.ErrNotFound
}
