package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/disclosure"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/dirwatch"
)

// What is next to a bundle: the customer's signature, and that the chain has it.
const (
	ReleasedSuffix = ".release.json"
	RecordedSuffix = ".recorded.json"
	RefusedSuffix  = ".refused.json"
)

// recordDisclosures puts what the customer releases of output into the chain.
func (a *agent) recordDisclosures(life context.Context) error {
	changed, end, err := dirwatch.Watch(a.dir.Support())
	if err != nil {
		return err
	}
	defer end()
	for {
		released, err := filepath.Glob(filepath.Join(a.dir.Support(), "*"+ReleasedSuffix))
		if err != nil {
			return err
		}
		for _, file := range released {
			a.recordDisclosure(life, strings.TrimSuffix(file, ReleasedSuffix))
		}
		select {
		case <-life.Done():
			return context.Cause(life)
		case <-changed:
		}
	}
}

// recordDisclosure records one, once; a crash in between records it twice.
func (a *agent) recordDisclosure(ctx context.Context, bundle string) {
	for _, done := range []string{RecordedSuffix, RefusedSuffix} {
		if _, err := os.Lstat(bundle + done); !errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	s, signers, err := a.disclosed(bundle)
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "release of output is not recorded", "bundle", filepath.Base(bundle), "err", err)
		_ = datadir.WriteJSON(bundle+RefusedSuffix, err.Error())
		return
	}
	head, err := a.chain.Append(ctx, chain.Record{
		Actor: "customer", Kind: chain.Event, What: "output was released to " + s.Recipient,
		Detail: fmt.Sprintf("%s, %d bytes, %s, until %s, signed by %s: %s", s.Bundle, s.Size, s.Digest, s.Until.Format("2006-01-02T15:04:05Z07:00"), strings.Join(signers, ", "), s.Reason),
	})
	if err == nil {
		err = datadir.WriteJSON(bundle+RecordedSuffix, head)
	}
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "release of output is not recorded", "bundle", filepath.Base(bundle), "err", err)
	}
}

// disclosed checks a release as who receives it does.
func (a *agent) disclosed(bundle string) (s disclosure.Statement, signers []string, err error) {
	var env capsule.Envelope
	if _, err := datadir.ReadJSON(bundle+ReleasedSuffix, &env); err != nil {
		return s, nil, err
	}
	text, err := os.ReadFile(bundle)
	if err != nil {
		return s, nil, err
	}
	trust, err := a.dir.LoadTrust() // as it is now
	if err != nil {
		return s, nil, err
	}
	panel, err := trust.Panel(a.keys.Public())
	if err != nil {
		return s, nil, err
	}
	if s, signers, err = disclosure.Verify(env, text, panel.Keys()); err != nil {
		return s, nil, err
	}
	if s.InstallID != a.runner.InstallID || s.Bundle != filepath.Base(bundle) {
		return s, nil, errors.New("the release is of another install or bundle")
	}
	return s, signers, nil
}
