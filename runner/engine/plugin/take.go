package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// What a plugin may leave, at most. Sizes are in bytes.
const (
	maxResult  = 64 << 10
	maxPlan    = 8 << 20
	maxOutputs = 256 << 10
	maxNames   = 256
	maxPinned  = 128 << 20
	maxError   = 2000
)

// report is what of out/result.json is the plugin's to say.
type report struct {
	JobID    string          `json:"job_id"`
	Outcome  jobspec.Outcome `json:"outcome"`
	Error    string          `json:"error"`
	Remedy   string          `json:"remedy"`
	NoChange bool            `json:"no_change"`
}

// readOut reads a file that the plugin left in out/. It follows no link there.
func (p *admitted) readOut(name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(p.dir("out"))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("it left no %s", name)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("its %s is not a file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("its %s is larger than %d bytes", name, limit)
	}
	return raw, err
}

// report reads what came of the plugin's job by its own words.
func (p *admitted) report() (report, error) {
	var r report
	raw, err := p.readOut("result.json", maxResult)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("its result.json cannot be read: %w", err)
	}
	switch r.Outcome {
	case jobspec.OutcomeSucceeded, jobspec.OutcomeFailed, jobspec.OutcomeCancelled, jobspec.OutcomeRefused, jobspec.OutcomeStale, jobspec.OutcomeNotStarted:
	default:
		return r, fmt.Errorf("its outcome %.40q is none that it may say", r.Outcome)
	}
	if r.JobID != "" && r.JobID != p.job.Spec.JobID {
		return r, fmt.Errorf("its result is of job %.40q, this is %s", r.JobID, p.job.Spec.JobID)
	}
	return r, nil
}

var outputName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// takeOutputs takes over the outputs. One that holds a secret of the config is
// sensitive, whatever the plugin says.
func (p *admitted) takeOutputs(ctx context.Context, result *jobspec.Result, hidden []string) error {
	outputs := jobspec.Outputs{}
	if _, err := os.Lstat(p.dir("out", "outputs.json")); err == nil {
		raw, err := p.readOut("outputs.json", maxOutputs)
		if err != nil {
			return p.brokenf("%v", err)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&outputs); err != nil {
			return p.brokenf("its outputs.json cannot be read: %v", err)
		}
	}
	if len(outputs) > maxNames {
		return p.brokenf("it has more than %d outputs", maxNames)
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		o := outputs[name]
		switch {
		case !outputName.MatchString(name):
			return p.brokenf("output %.40q has a name that is not possible: letters, digits, _, . and -", name)
		case !json.Valid(o.Value):
			return p.brokenf("output %s has no value", name)
		case isSealed(o.Value):
			return p.brokenf("output %s looks like a value that Berth has sealed", name)
		case showsSecret(string(o.Value), hidden):
			o.Sensitive = true
			outputs[name] = o
		}
	}
	result.Outputs = outputs
	return p.job.LeaveJSON(ctx, "outputs.json", outputs)
}

// isSealed says whether a value, or one in it, passes for one that was sealed for
// another purpose.
func isSealed(value json.RawMessage) bool { return bytes.Contains(value, []byte(`"$sealed"`)) }

// showsSecret looks for secrets as they are and as JSON writes them.
func showsSecret(text string, hidden []string) bool {
	return slices.ContainsFunc(hidden, func(secret string) bool {
		quoted, _ := json.Marshal(secret) // text is always possible
		return strings.Contains(text, secret) || strings.Contains(text, string(quoted[1:len(quoted)-1]))
	})
}

// copyFiles copies files and directories, and nothing else, within the limit.
func copyFiles(to string, from fs.FS) error {
	left := int64(maxPinned)
	return fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		switch {
		case entry.IsDir():
			return os.MkdirAll(path, 0o700)
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is no file", name)
		}
		f, err := from.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		raw, err := io.ReadAll(io.LimitReader(f, left+1))
		if left -= int64(len(raw)); left < 0 {
			return fmt.Errorf("it is more than %d bytes", maxPinned)
		}
		if err != nil {
			return err
		}
		return job.WriteFile(path, raw)
	})
}
