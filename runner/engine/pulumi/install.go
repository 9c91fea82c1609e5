package pulumi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/runner/engine/build"
	"github.com/berth-dev/berth/runner/engine/job"
)

// npmLocks are the lock files of npm. The first one wins, as with npm.
var npmLocks = []string{"npm-shrinkwrap.json", "package-lock.json"}

// install gives a program for Node.js the packages of its lock file, each checked
// against the checksum there. Scripts of packages do not run, unless the app says so.
// A folder that brings its node_modules keeps them as they are.
func install(ctx context.Context, j *job.Job, dir string) error {
	needed, err := needsPackages(dir)
	if err != nil {
		return err
	}
	if !needed {
		j.Logf("runtime nodejs: the folder is packed as it is")
		return nil
	}
	lock := ""
	for _, name := range npmLocks {
		if lock == "" && there(dir, name) {
			lock = name
		}
	}
	if lock == "" {
		return errors.New("package.json names dependencies, and there is neither a package-lock.json nor a node_modules: run npm install, and keep its package-lock.json with the program" + otherLock(dir))
	}
	env, err := j.BaseEnv()
	if err != nil {
		return err
	}
	npm, err := lookPath("npm", env["PATH"])
	if err != nil {
		return errors.New("the program has a " + lock + ", and there is no npm on the machine that builds it: put Node.js there, or keep node_modules with the program")
	}
	env["NPM_CONFIG_CACHE"], env["NPM_CONFIG_UPDATE_NOTIFIER"] = j.Work("npm"), "false"
	if v := env["SSL_CERT_FILE"]; v != "" {
		env["NODE_EXTRA_CA_CERTS"] = v // Node.js reads no other
	}
	args := []string{"ci", "--no-audit", "--no-fund", "--loglevel=warn"}
	if pulumi := j.Spec.Source.Pulumi; pulumi == nil || !pulumi.NpmScripts {
		args = append(args, "--ignore-scripts")
	}
	j.Logf("npm %s, by %s", strings.Join(args, " "), lock)
	cmd := tool(exec.CommandContext(ctx, npm, args...), dir, env)
	said, kept := tee(j.Stderr)
	cmd.Stdout, cmd.Stderr = j.Stdout, said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm ci: %w: %s", err, npmSays(kept.String()))
	}
	// What it installed must fit into the artifact, and lead nowhere else.
	files, bytes, err := build.Fits(dir)
	if err == nil {
		j.Logf("with its packages %d files, %d bytes", files, bytes)
	}
	return err
}

// needsPackages says whether there is something to install.
func needsPackages(dir string) (bool, error) {
	if info, err := os.Lstat(filepath.Join(dir, "node_modules")); err == nil && info.IsDir() {
		return false, nil
	}
	if !there(dir, "package.json") {
		return false, nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return false, err
	}
	var named struct {
		Dependencies         map[string]any `json:"dependencies"`
		DevDependencies      map[string]any `json:"devDependencies"`
		OptionalDependencies map[string]any `json:"optionalDependencies"`
		Workspaces           any            `json:"workspaces"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return false, fmt.Errorf("package.json: %w", err)
	}
	return len(named.Dependencies)+len(named.DevDependencies)+len(named.OptionalDependencies) > 0 || named.Workspaces != nil, nil
}

// otherLock says that the lock file of another package manager is not read.
func otherLock(dir string) string {
	for _, name := range []string{"yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"} {
		if there(dir, name) {
			return " (" + name + " is not read)"
		}
	}
	return ""
}

// npmSays is the first line of npm's errors that says something: the code comes
// before it.
func npmSays(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"npm error ", "npm ERR! "} {
			if said, ok := strings.CutPrefix(line, prefix); ok && !strings.HasPrefix(said, "code ") && strings.TrimSpace(said) != "" {
				return said
			}
		}
	}
	return "it does not say why"
}
