package conformance

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Builder is a World whose engine builds, too. Its Job is asked for builds; Updated
// is another source than First.
type Builder interface {
	World
	// Built names what a build left below out/, such that other bytes have another
	// name; an error when nothing usable is there.
	Built(out string) (string, error)
}

// Builds lists the rules for builds, numbered after those of Musts. The built-in
// engines keep them; a plugin is built by its vendor. Subjects that they are tried
// with make worlds that are Builders.
func Builds() []Must {
	all := []Must{
		{ID: "build", Says: "A build leaves its artifact in out/ and ends with exit code 0; it changes nothing below in/, and another source gives another artifact.", test: (*trial).build},
		{ID: "same-build", Says: "Two builds of the same source leave the same artifact.", test: (*trial).sameBuild},
		{ID: "build-secrets", Says: "A secret that a build is given is in no log and no error, and in nothing that the build leaves.", test: (*trial).buildSecrets},
		{ID: "build-credential", Says: "Without a credential that it needs, a build ends by itself, says so in one line, and does not succeed.", test: func(t *trial) error { return t.buildWithout(LacksCredential) }},
		{ID: "build-tool", Says: "The same holds without a tool that it needs.", test: func(t *trial) error { return t.buildWithout(LacksTool) }},
		{ID: "build-version", Says: "A build of a version of the contract that the engine does not know is refused with exit code 10.", test: (*trial).buildVersion},
		{ID: "cancel-build", Says: "A build ends within 20 s after SIGTERM, and the next one leaves the same artifact.", test: func(t *trial) error { return t.cutBuild(syscall.SIGTERM) }},
		{ID: "kill-build", Says: "After a build that is killed, the next one leaves the same artifact.", test: func(t *trial) error { return t.cutBuild(syscall.SIGKILL) }},
	}
	for i := range all {
		all[i].Number = len(Musts()) + i + 1
	}
	return all
}

var buildFirst = Order{Operation: jobspec.OperationBuild, Config: First}

// built runs a build that has to succeed, and names what it left.
func (t *trial) built(o Order) (string, *job, error) {
	b, ok := t.world.(Builder)
	if !ok {
		return "", nil, errors.New("the world of the test is no Builder")
	}
	j, err := t.must(a{Order: o})
	if err != nil {
		return "", j, err
	}
	name, err := b.Built(filepath.Join(j.dir, "out"))
	if err == nil && name == "" {
		err = errors.New("it succeeded and left no artifact")
	}
	return name, j, err
}

func (t *trial) build() error {
	first, j, err := t.built(buildFirst)
	if err != nil {
		return err
	}
	if err := j.onlyItsOwn(); err != nil {
		return err
	}
	other, _, err := t.built(Order{Operation: jobspec.OperationBuild, Config: Updated})
	if err == nil && other == first {
		err = fmt.Errorf("another source gives the same artifact, %s", first)
	}
	return err
}

func (t *trial) sameBuild() error {
	first, _, err := t.built(buildFirst)
	if err != nil {
		return err
	}
	return t.buildsAs(first)
}

// buildsAs checks that a build leaves an artifact of a name.
func (t *trial) buildsAs(want string) error {
	got, _, err := t.built(buildFirst)
	if err == nil && got != want {
		err = fmt.Errorf("the first build left %s, the next one %s", want, got)
	}
	return err
}

func (t *trial) buildSecrets() error {
	if t.BuildSecret == "" {
		return errors.New("the subject names no BuildSecret")
	}
	_, j, err := t.built(buildFirst)
	if err != nil {
		return err
	}
	if strings.Contains(j.log, t.BuildSecret) {
		return errors.New("the log of the build has the secret")
	}
	return filepath.WalkDir(filepath.Join(j.dir, "out"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if packed, err := gzip.NewReader(bytes.NewReader(raw)); err == nil { // a layer
			if raw, err = io.ReadAll(packed); err != nil {
				return err
			}
		}
		if bytes.Contains(raw, []byte(t.BuildSecret)) {
			return fmt.Errorf("the secret is in out/%s", e.Name())
		}
		return nil
	})
}

func (t *trial) buildWithout(what Lack) error {
	j, err := t.run(a{Order: Order{Operation: jobspec.OperationBuild, Config: First, Lacks: what}})
	if err == nil && j.result.Outcome == jobspec.OutcomeSucceeded {
		err = fmt.Errorf("it succeeded without a %s", what)
	}
	return err
}

func (t *trial) buildVersion() error {
	j, err := t.run(a{Order: buildFirst, change: func(s *jobspec.Spec) { s.Version = 99 }})
	if err == nil && j.result.Outcome != jobspec.OutcomeRefused {
		err = fmt.Errorf("outcome %s, want %s", j.result.Outcome, jobspec.OutcomeRefused)
	}
	return err
}

// cutBuild cuts builds short, at a third and at two thirds of the time that a whole
// one took.
func (t *trial) cutBuild(with syscall.Signal) error {
	want, whole, err := t.built(buildFirst)
	if err != nil {
		return err
	}
	for _, after := range []time.Duration{whole.took / 3, whole.took * 2 / 3} {
		j, err := t.run(a{Order: buildFirst, signal: with, after: after})
		if err != nil {
			return err
		}
		if r := j.result; r != nil && r.Outcome == jobspec.OutcomeSucceeded {
			// It was faster; then its artifact is whole.
			got, err := t.world.(Builder).Built(filepath.Join(j.dir, "out")) // built checked that it is one
			if err != nil {
				return fmt.Errorf("it said that it succeeded: %w", err)
			}
			if got != want {
				return fmt.Errorf("it said that it succeeded, and left %s, want %s", got, want)
			}
		}
		if err := t.world.Killed(); err != nil {
			return err
		}
	}
	return t.buildsAs(want)
}

// onlyItsOwn checks that a job left nothing but what is its own in its directory.
func (j *job) onlyItsOwn() error {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case "job.json", "in", "out", "work":
		default:
			return fmt.Errorf("it left %s in the job's directory: only out/ and work/ are its own", e.Name())
		}
	}
	return nil
}
