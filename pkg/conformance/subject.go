package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Subject is an engine on trial.
type Subject struct {
	Name string
	// Command is the executable with its first arguments; the kit adds "run DIR".
	Command []string
	// Start makes the command of a job in its place, for an engine that is no
	// executable; nil for any other.
	Start func(dir string, env []string) (*exec.Cmd, error)
	// NewWorld makes what the engine works on, in an empty directory of its own.
	NewWorld func(dir string) (World, error)
	// Secret is in every config and becomes the output SecretOutput; it is nowhere
	// else where people look. "" for an engine without one.
	Secret, SecretOutput string
	// BuildSecret is one that builds are given, "" for an engine without one.
	BuildSecret string
	// NotApplicable gives for a rule (by Must.ID) the reason why it has no meaning
	// for this engine.
	NotApplicable map[string]string
	// Close removes what the subject needs while it is on trial; nil for nothing.
	Close func() error
	// Timeout bounds one job, 60 s when it is 0; Grace the time after a SIGTERM, 20 s
	// when it is 0.
	Timeout, Grace time.Duration
}

func (s Subject) close() {
	if s.Close != nil {
		_ = s.Close() // temporary files
	}
}

// World is a place that the engine changes. Each rule gets a new one.
type World interface {
	// Job puts into dir what the agent would, except job.json and in/pinned, and
	// returns the order and the environment.
	Job(dir string, o Order) (jobspec.Spec, []string, error)
	// Look says what is there now, in words that depend on nothing else: two worlds
	// after the same applies look the same, and one where nothing is looks "".
	Look(ctx context.Context) (string, error)
	// Drift changes what the engine made behind its back.
	Drift(ctx context.Context) error
	// Killed does what the agent and the control plane do when an engine was killed,
	// such as freeing its lock.
	Killed() error
}

// Order says which job is wanted.
type Order struct {
	Operation jobspec.Operation
	Destroy   bool
	Config    Config
	Lacks     Lack
	// Fence is that of an apply: each one has a higher one.
	Fence int64
}

// Config names one of three wishes for the same component.
type Config string

// The wishes: what Updated changes of First is changed in place, what Replaced
// changes needs a new object.
const (
	First    Config = "first"
	Updated  Config = "updated"
	Replaced Config = "replaced"
)

// Lack is something that a job has to do without.
type Lack string

// What may be missing.
const (
	LacksNothing    Lack = ""
	LacksCredential Lack = "credential"
	LacksTool       Lack = "tool"
)

// Status says how a rule went.
type Status string

// All of them.
const (
	Kept          Status = "kept"
	Broken        Status = "broken"
	NotApplicable Status = "not applicable"
)

// Verdict is how one rule went.
type Verdict struct {
	Must   Must
	Status Status
	// Why says what broke the rule, or why it does not apply.
	Why  string
	Took time.Duration
}

// Try tests one rule in a directory that it makes and removes.
func (s Subject) Try(ctx context.Context, m Must) Verdict {
	began := time.Now()
	v := Verdict{Must: m, Status: Kept}
	if why := s.NotApplicable[m.ID]; why != "" {
		v.Status, v.Why = NotApplicable, why
		return v
	}
	if err := s.try(ctx, m); err != nil {
		v.Status, v.Why = Broken, err.Error()
	}
	v.Took = time.Since(began)
	return v
}

func (s Subject) try(ctx context.Context, m Must) error {
	dir, err := os.MkdirTemp("", "berth-conformance-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t, err := newTrial(ctx, s, dir)
	if err != nil {
		return fmt.Errorf("make the world of the test: %w", err)
	}
	return m.test(t)
}

// Summary counts verdicts in one line: "conformance: helm ran 17, not applicable 2".
func Summary(name string, all []Verdict) string {
	ran, none, broken := 0, 0, 0
	for _, v := range all {
		switch v.Status {
		case NotApplicable:
			none++
		case Broken:
			broken++
			ran++
		default:
			ran++
		}
	}
	text := fmt.Sprintf("conformance: %s ran %d, not applicable %d", name, ran, none)
	if broken > 0 {
		text += fmt.Sprintf(", broken %d", broken)
	}
	return text
}
