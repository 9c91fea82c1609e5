package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// runInCluster runs the agent of a pod while that pod has the runner's lease.
// When the lease is lost, engines are asked to stop and the process ends: the
// pod that has it now goes on.
func runInCluster(ctx context.Context, cfg agent.Config) error {
	pod, err := cluster.InPod(os.Getenv)
	if err != nil {
		return err
	}
	cfg.Pod = pod
	dir, err := datadir.At(cfg.Data)
	if err != nil {
		return err
	}
	data, err := sameData(dir)
	if err != nil {
		return err
	}
	held, release, err := pod.Hold(ctx, cluster.LeaseConfig{Data: data, Locked: dir.Locked, Log: cfg.Log})
	switch {
	case ctx.Err() != nil && err != nil:
		return nil // told to end while it waited
	case err != nil:
		return err
	}
	defer release()
	err = agent.Run(held, cfg)
	if cause := context.Cause(held); errors.Is(cause, cluster.ErrLeaseLost) {
		return errors.Join(cause, err)
	}
	return err
}

// sameData recognises the volume of the data directory among the pods of a
// node: the kernel shows all of them the same device and inode.
func sameData(dir datadir.Dir) (string, error) {
	info, err := os.Stat(dir.Path())
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", nil
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino), nil
}
