package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// idleBudget is what a runner may cost that only looks whether its components are ready,
	// in percent of a core.
	idleBudget = 1.0
	// settleIdle is how long after a provision its runner is left alone before it is measured.
	settleIdle = 90 * time.Second
)

// runIdle deploys n components of each kind to the cluster of KUBECONFIG and measures what
// their runner costs afterwards, with the engines that it starts, while nobody does anything.
func runIdle(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	if os.Getenv("KUBECONFIG") == "" {
		return errors.New("KUBECONFIG names no cluster to measure on: set it, or start one with make kube")
	}
	kubectl, err := tool("kubectl")
	if err != nil {
		return err
	}
	helm, err := tool("helm")
	if err != nil {
		return err
	}
	n := opts.components[len(opts.components)-1]
	rows := [][]string{{"components", "kind", "minutes", "ms of a processor each minute", "of a core"}}
	within := true
	before := load()
	for _, k := range clusterKinds {
		spent, err := idle(ctx, opts, idleOf{kind: k, n: n, tools: map[string]string{"kubectl": kubectl, "helm": helm}, progress: progress})
		if err != nil {
			return err
		}
		share := 100 * float64(spent) / float64(time.Duration(opts.rounds)*time.Minute)
		within = within && share <= idleBudget
		rows = append(rows, []string{strconv.Itoa(n), k.name, strconv.Itoa(opts.rounds), milliseconds(spent / time.Duration(opts.rounds)), fmt.Sprintf("%.2f %%", share)})
	}
	fmt.Fprintf(out, "\nA runner that only looks at its components, with its engines. %d CPUs, load %s before and %s after; %s, %s/%s.\n\n",
		runtime.NumCPU(), before, load(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := markdown(out, rows, 1); err != nil {
		return err
	}
	verdict := "kept"
	if !within {
		verdict = "missed"
	}
	_, err = fmt.Fprintf(out, "\nBudget: ≤ %.0f %% of a core: %s.\n", idleBudget, verdict)
	return err
}

type idleOf struct {
	kind     kind
	n        int
	tools    map[string]string
	progress io.Writer
}

// idle is one measurement, on a system of its own.
func idle(ctx context.Context, opts options, of idleOf) (spent time.Duration, err error) {
	fmt.Fprintln(of.progress, "starting Berth")
	s, err := startSystem(ctx, opts.bin)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if err != nil {
		return 0, err
	}
	c := &cluster{system: s, tools: of.tools, kinds: []kind{of.kind}, name: "berth-idle-" + strconv.Itoa(os.Getpid()), progress: of.progress}
	if err := c.open(ctx); err != nil {
		return 0, err
	}
	defer c.store.Close()
	defer func() { err = errors.Join(err, c.clean(context.WithoutCancel(ctx))) }()
	if _, _, _, err := c.setUp(ctx, of.kind, of.n); err != nil {
		return 0, err
	}
	if err := pause(ctx, settleIdle); err != nil {
		return 0, err
	}
	fmt.Fprintf(of.progress, "%d × %s: measured for %d minutes\n", of.n, of.kind.name, opts.rounds)
	before := s.runnerProcessor()
	if err := pause(ctx, time.Duration(opts.rounds)*time.Minute); err != nil {
		return 0, err
	}
	spent = s.runnerProcessor() - before
	if spent <= 0 {
		return 0, errors.New("no process of the runner was found in /proc")
	}
	return spent, nil
}

// runnerProcessor is the time that the install's runner and all that it started have had on a
// processor until now.
func (s *system) runnerProcessor() time.Duration {
	return s.processorOf(func(proc string) bool {
		program, err := os.Readlink(filepath.Join(proc, "exe"))
		program = strings.TrimSuffix(program, " (deleted)") // built again meanwhile
		if err != nil || filepath.Base(program) != "berth-runner" || !s.owns(proc) {
			return false
		}
		raw, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		return err == nil && !bytes.Contains(raw, []byte("/builder/runners/"))
	})
}
