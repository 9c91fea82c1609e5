package policies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const name = "berth-policy"

// ErrMissing says that there is no engine.
var ErrMissing = errors.New(name + ", which knows Kyverno and Rego, is not next to berth")

// Remedy is what to do about ErrMissing.
const Remedy = "unpack the whole archive of the release, or set BERTH_LIBEXEC to the folder where it is"

// Find returns the engine next to this program, or in BERTH_LIBEXEC.
func Find(getenv func(string) string) (string, error) {
	dirs := []string{getenv("BERTH_LIBEXEC")}
	if self, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(self); err == nil {
			dirs = append(dirs, filepath.Dir(resolved))
		}
	}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", ErrMissing
}

// Finding is what is wrong with a file of rules.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// Checked is what the engine says of files.
type Checked struct {
	Engine   string    `json:"engine"`
	Files    int       `json:"files"`
	Findings []Finding `json:"findings"`
}

// Test is one expectation of a test of policies, and how it went: pass, fail, error, or
// unknown where only a cluster could say.
type Test struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Policy   string `json:"policy,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Resource string `json:"resource,omitempty"`
	Result   string `json:"result"`
	Message  string `json:"message,omitempty"`
}

// Tested is how all tests went.
type Tested struct {
	Engine  string `json:"engine"`
	Tests   []Test `json:"tests"`
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Errors  int    `json:"errors"`
	Unknown int    `json:"unknown"`
}

// Ask starts the engine with arguments, and reads what it answers. That files are wrong, or
// tests fail, is an answer and no error.
func Ask(ctx context.Context, engine string, answer any, args ...string) error {
	cmd := exec.CommandContext(ctx, engine, args...)
	cmd.Env = []string{} // it needs nothing of it
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	const answered = 1 // exit code of an answer that is no
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != answered || out.Len() == 0) {
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return fmt.Errorf("%s: %w: %s", engine, err, line)
	}
	if err := json.Unmarshal(out.Bytes(), answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", engine, err)
	}
	return nil
}
