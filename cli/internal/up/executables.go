package up

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/durable"
)

// The other executables of Berth.
const (
	exeCtlAPI    = "berth-ctl-api"
	exeRunnerAPI = "berth-runner-api"
	exeBuilder   = "berth-builder"
	exeLogIngest = "berth-log-ingest"
	exeRunner    = "berth-runner"
	exeEngine    = "berth-engine"
	exePolicy    = "berth-policy"
)

var allExecutables = []string{exeCtlAPI, exeRunnerAPI, exeBuilder, exeLogIngest, exeRunner, exeEngine, exePolicy}

// findExecutables returns the folder that has all of them: the one of this
// executable, else BERTH_LIBEXEC; else, in a source tree, they are built.
func findExecutables(ctx context.Context, getenv func(string) string, say func(string)) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fmt.Errorf("find the own executable: %w", err)
	}
	var lacking []string
	for _, dir := range []string{filepath.Dir(self), getenv("BERTH_LIBEXEC")} {
		if dir == "" {
			continue
		}
		missing := missingIn(dir)
		if len(missing) == 0 {
			return dir, nil
		}
		lacking = append(lacking, fmt.Sprintf("%s has no %s", dir, strings.Join(missing, ", ")))
	}
	if root, ok := sourceTree(filepath.Dir(self)); ok {
		return build(ctx, root, say)
	}
	return "", problem(nil, "set BERTH_LIBEXEC to the folder where they are, or run make build in a clone",
		"the executables of Berth are not all here: %s", strings.Join(lacking, "; "))
}

func missingIn(dir string) (missing []string) {
	for _, name := range allExecutables {
		if !isExecutable(filepath.Join(dir, name)) {
			missing = append(missing, name)
		}
	}
	return missing
}

func isExecutable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// sourceTree looks for a clone around a folder, then around the current one.
func sourceTree(start string) (root string, ok bool) {
	starts := []string{start}
	if cwd, err := os.Getwd(); err == nil {
		starts = append(starts, cwd)
	}
	for _, dir := range starts {
		for {
			script := filepath.Join(dir, "dev", "scripts", "build.sh")
			if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil && isExecutable(script) {
				return dir, true
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return "", false
}

func build(ctx context.Context, root string, say func(string)) (string, error) {
	say("building the executables in " + root + " (minutes the first time)")
	cmd := exec.CommandContext(ctx, filepath.Join(root, "dev", "scripts", "build.sh"), allExecutables...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		what, _ := lastWords(string(out))
		return "", problem(err, "run make build to see all of it", "building the executables: %v: %s", err, what)
	}
	return filepath.Join(root, ".bin"), nil
}

// shared returns a path to the executable that other users can use as well:
// itself, or a copy in the data folder when it lies where they cannot get.
func (l Layout) shared(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if os.Geteuid() != 0 || passable(filepath.Dir(target)) {
		return path, nil
	}
	to := filepath.Join(l.binDir(), filepath.Base(path))
	if same, err := sameContents(target, to); err != nil || same {
		return to, err
	}
	return to, onDisk(l.Shared, copyExecutable(target, to))
}

func sameContents(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	if err != nil || x.Size() != y.Size() {
		return false, nil
	}
	first, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer func() { _ = first.Close() }()
	second, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer func() { _ = second.Close() }()
	p, q := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, errFirst := io.ReadFull(first, p)
		m, _ := io.ReadFull(second, q)
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if errFirst != nil {
			return true, nil
		}
	}
}

// copyExecutable replaces to, which may be running.
func copyExecutable(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return durable.Replace(to, 0o755, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}
