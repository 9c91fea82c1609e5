package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// way is one way to bring components to a value.
type way interface {
	// prepare does what is not measured.
	prepare(ctx context.Context, value string) error
	// deploy is what is measured. It answers how long it took, and how long its
	// processes were on a processor meanwhile.
	deploy(ctx context.Context) (wall, cpu time.Duration, err error)
	// verify fails unless the deploy did what it should.
	verify(ctx context.Context, changed bool) error
}

// toolWay calls the kind's own tool once per component.
type toolWay struct {
	*cluster
	kind      kind
	n, atOnce int
	folder    string // of the app; the tool takes the chart in it
	namespace string
	value     string
}

// manifest is the file of a component.
func (t *toolWay) manifest(name string) string { return filepath.Join(t.folder, name+".yaml") }

func (t *toolWay) prepare(_ context.Context, value string) error {
	t.value = value
	for _, name := range names(t.n) {
		if err := os.WriteFile(t.manifest(name), []byte(line(name, value)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (t *toolWay) deploy(ctx context.Context) (wall, cpu time.Duration, err error) {
	program, _, _ := strings.Cut(t.kind.tool, " ")
	var all atomic.Int64
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(t.atOnce)
	for _, name := range names(t.n) {
		group.Go(func() error {
			_, took, err := t.system.measured(ctx, t.tools[program], t.kind.arguments(t, name, t.value)...)
			all.Add(int64(took))
			return err
		})
	}
	err = group.Wait()
	return time.Since(began), time.Duration(all.Load()), err
}

func (t *toolWay) verify(ctx context.Context, _ bool) error {
	if !t.kind.inCluster() {
		return t.kind.verify(t)
	}
	return t.cluster.verify(ctx, t.namespace, t.n, t.value)
}

// berthWay is one `berth deploy` of an install, all of whose changes are
// approved beforehand.
type berthWay struct {
	*cluster
	kind      kind
	install   string
	n         int
	namespace string
	value     string
	last      ctlapi.Workflow
	// spent is where the time of deploys went that changed something, and of
	// those that did not.
	spent map[bool]*spent
}

func (b *berthWay) prepare(ctx context.Context, value string) error {
	if b.value == value {
		return nil
	}
	b.value = value
	return b.system.berth(ctx, "installs", "inputs", b.install, "--set", "value="+value)
}

func (b *berthWay) deploy(ctx context.Context) (wall, cpu time.Duration, err error) {
	before, began := b.system.processor(), time.Now()
	out, cpu, err := b.system.measured(ctx, filepath.Join(b.system.bin, "berth"), "deploy", b.install, "--watch", "--output", "json")
	if err != nil {
		return 0, 0, err
	}
	wall = time.Since(began)
	cpu += b.system.processor() - before
	b.last = ctlapi.Workflow{}
	if err := json.Unmarshal(out, &b.last); err != nil {
		return 0, 0, fmt.Errorf("what berth deploy prints: %w", err)
	}
	return wall, cpu, nil
}

func (b *berthWay) verify(ctx context.Context, changed bool) error {
	want := ctlapi.ChangeStateNoChange
	if changed {
		want = ctlapi.ChangeStateApplied
	}
	found := 0
	for _, step := range b.last.Steps {
		if step.Change == nil || step.Kind != "deploy" {
			continue // the release's scripts are accepted once
		}
		if step.Change.State != want {
			return fmt.Errorf("deploy of %s: %s is %s, want %s", b.install, step.Name, step.Change.State, want)
		}
		found++
		if err := b.spent[changed].add(ctx, b.cluster, step.ID); err != nil {
			return err
		}
	}
	if found != b.n {
		return fmt.Errorf("deploy of %s had %d changes, want %d", b.install, found, b.n)
	}
	if !b.kind.inCluster() {
		return nil // the states of the changes are all that can be seen from here
	}
	return b.cluster.verify(ctx, b.namespace, b.n, b.value)
}
