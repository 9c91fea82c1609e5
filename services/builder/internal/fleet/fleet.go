// Package fleet keeps the Build Runners alive: one process per org, never
// shared, each with a data directory and an engine user of its own.
//
//	Ensure(org) ──▶ row in runners ──▶ keeper ──▶ berth-runner --data DIR
//	Run ──────────▶ rows of all orgs ─────┘           │ ends
//	                   ▲──────── back-off ◀───────────┘
//
// A Build Runner is an ordinary runner: it enrols with a secret, polls
// runner-api for jobs, and gets nothing from the builder but its directory. The
// builder is its owner as a customer is an Install Runner's. When the builder
// dies the runners keep running, and the next builder finds them by their lock.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
	"github.com/berth-dev/berth/services/builder/internal/orders"
)

// Config of a Fleet. Dir, Executable, RunnerAPIURL and Keys are required.
type Config struct {
	// Dir has one data directory per Build Runner.
	Dir string
	// Executable is berth-runner.
	Executable string
	// RunnerAPIURL is where the runners poll.
	RunnerAPIURL string
	// Keys are those with which builds are ordered.
	Keys *orders.Keys
	// Env of the runners, "NAME=value". The builder's own is not passed on.
	Env []string
	// EngineUID is the first user id of engines, one per runner from there on;
	// 0 when engines cannot have users of their own.
	EngineUID int
	// Replicas: other builders make Build Runners too, and this one is to find them.
	Replicas bool
	// MinBackoff is the pause before the first restart of a runner that died;
	// a second when zero.
	MinBackoff time.Duration
	Log        *slog.Logger
}

const (
	defaultMinBackoff = time.Second
	maxBackoff        = 30 * time.Second // a builder that was repaired is waited for no longer

	// A runner that lived this long did not die of how it was started.
	healthyAfter = time.Minute

	// lookInterval is how soon a Build Runner is started that another replica of
	// builder made.
	lookInterval = 3 * time.Second

	// stopTimeout is how long a runner may take to put its engines down. They
	// are adopted at its next start if it is cut short.
	stopTimeout = 20 * time.Second
)

// Fleet of Build Runners. Ensure may be called before and during Run.
type Fleet struct {
	roster *roster.Roster
	config Config

	mu     sync.Mutex
	wanted map[string]string // runner → org, all that Run must keep
	more   chan struct{}
	uids   sync.Mutex // held while an engine uid is chosen
}

// New makes a fleet; nothing runs before Run.
func New(s *database.Store, config Config) (*Fleet, error) {
	if config.MinBackoff == 0 {
		config.MinBackoff = defaultMinBackoff
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("build runners: %w", err)
	}
	config.Dir = dir
	// Engines pass through, and list nothing, whatever the umask is.
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o711)); err != nil {
		return nil, fmt.Errorf("build runners: %w", err)
	}
	own := &roster.Roster{Store: s, Keys: config.Keys, RunnerAPIURL: config.RunnerAPIURL}
	return &Fleet{roster: own, config: config, wanted: map[string]string{}, more: make(chan struct{}, 1)}, nil
}

// Ensure returns the id of the org's Build Runner and sees that it is kept
// alive. The first call for an org makes it. It is always ready: its directory
// stays, so the machine that enrolled last is the one that comes back.
func (f *Fleet) Ensure(ctx context.Context, orgID string) (runnerID string, ready bool, err error) {
	if runnerID, err = f.roster.Runner(ctx, orgID); err != nil {
		return "", false, err
	}
	f.keep(orgID, runnerID)
	return runnerID, true, nil
}

func (f *Fleet) keep(orgID, runnerID string) {
	f.mu.Lock()
	f.wanted[runnerID] = orgID
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// Run keeps all Build Runners alive, also those of builds long ago. When ctx
// ends it stops them and waits for them.
func (f *Fleet) Run(ctx context.Context) error {
	if err := f.recall(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	var look <-chan time.Time // never, unless others make Build Runners
	if f.config.Replicas {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		look = ticker.C
	}
	var group errgroup.Group
	kept := map[string]bool{}
	for ctx.Err() == nil {
		for runnerID, orgID := range f.all() {
			if !kept[runnerID] {
				kept[runnerID] = true
				group.Go(func() error {
					f.keeper(orgID, runnerID).run(ctx)
					return nil
				})
			}
		}
		select {
		case <-ctx.Done():
		case <-f.more:
		case <-look:
			if err := f.recall(ctx); err != nil && ctx.Err() == nil {
				f.config.Log.WarnContext(ctx, "new build runners not found", "err", err)
			}
		}
	}
	return group.Wait()
}

// recall reads who was kept before this process, or was made by another replica.
func (f *Fleet) recall(ctx context.Context) error {
	orgOf, err := f.roster.Recall(ctx, "build_runner", f.all())
	for runnerID, orgID := range orgOf {
		f.keep(orgID, runnerID)
	}
	return err
}

func (f *Fleet) all() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.wanted)
}
