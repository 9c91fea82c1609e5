// Package job is a job directory as an engine sees it: the order, where things
// are, what the agent gave along, how templates are rendered, and how an engine
// says that it could not do what was asked.
//
// The layout of the directory is the contract of package jobspec. What is done
// in it belongs to the engines.
package job

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Job is one attempt.
type Job struct {
	Dir  string // absolute
	Spec jobspec.Spec
	// Env is what the agent started the engine with. Little of it reaches
	// tools: see BaseEnv.
	Env map[string]string
	// Stdout and Stderr are the log of the job. They are files, so that tools
	// write to them without the engine in between: no line is lost when it dies.
	Stdout, Stderr *os.File
	// StartedAt is the `now` of all templates of this attempt.
	StartedAt time.Time

	state interpolate.State // decoded when the first template is rendered
	shown jobspec.Progress  // what Show said last
}

// Open reads job.json of a directory and checks it. The job is returned also
// when its order is not acceptable, so that its result can name it.
func Open(dir string) (*Job, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return &Job{Dir: dir}, err
	}
	j := &Job{Dir: abs}
	data, err := os.ReadFile(filepath.Join(abs, "job.json"))
	if err != nil {
		return j, fmt.Errorf("read the order: %w", err)
	}
	if err := json.Unmarshal(data, &j.Spec); err != nil {
		return j, fmt.Errorf("read the order: job.json: %w", err)
	}
	if err := j.Spec.Validate(); err != nil {
		return j, fmt.Errorf("the order is not acceptable: %w", err)
	}
	return j, nil
}

// In names a path below in/: what the agent gave.
func (j *Job) In(path ...string) string { return j.path("in", path) }

// Work names a path below work/: scratch.
func (j *Job) Work(path ...string) string { return j.path("work", path) }

// Out names a path below out/: what the agent takes.
func (j *Job) Out(path ...string) string { return j.path("out", path) }

func (j *Job) path(top string, path []string) string {
	return filepath.Join(append([]string{j.Dir, top}, path...)...)
}

// Subject names what the job is about, for people: "component card".
func (j *Job) Subject() string {
	switch {
	case j.Spec.Resource != nil:
		return j.Spec.Resource.Kind + " " + j.Spec.Resource.Name
	case j.Spec.Action != nil:
		return "action " + j.Spec.Action.Name
	case j.Spec.BuildID != "":
		return "build " + j.Spec.BuildID
	default:
		return "job " + j.Spec.JobID
	}
}

// Logf writes a line to the log.
func (j *Job) Logf(format string, args ...any) {
	fmt.Fprintf(j.Stdout, format+"\n", args...)
}

// WriteFile writes a file that only the engine's user reads: most of what an
// engine writes may hold secrets. Missing directories are made.
func WriteFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// WriteJSON writes v as JSON, in the bytes that Marshal gives.
func WriteJSON(path string, v any) error {
	data, err := Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return WriteFile(path, data)
}

// ReadJSON reads what WriteJSON wrote. Numbers in untyped places stay as they
// are written.
func ReadJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%s: there is more than one JSON value in it", filepath.Base(path))
	}
	return nil
}
