package pulumi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/stateclient"
)

// keeper hands in each checkpoint that the command writes: before and after each
// thing that it does. So the state names what was begun, whatever is killed.
type keeper struct {
	w      *workspace
	lock   *stateclient.Lock
	events *os.File // inotify
	ended  chan error
	last   []byte // deployment that was handed in last
}

// keep watches the file of the stack until finish.
func keep(w *workspace, lock *stateclient.Lock) (*keeper, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch the state of pulumi: %w", err)
	}
	// It replaces the file, so the directory tells.
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(w.checkpointPath()), unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch the state of pulumi: %w", err)
	}
	k := &keeper{w: w, lock: lock, events: os.NewFile(uintptr(fd), "inotify"), ended: make(chan error, 1), last: w.doc.Pulumi.Deployment}
	go func() { k.ended <- k.follow() }()
	return k, nil
}

// follow hands in what is there after each event, and returns when there will be no
// more. What fails to be handed in is tried again with the next.
func (k *keeper) follow() error {
	events := make([]byte, 64<<10) // as many as came meanwhile are one
	for {
		if _, err := k.events.Read(events); err != nil {
			if errors.Is(err, os.ErrClosed) || errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("watch the state of pulumi: %w", err)
		}
		if err := k.hand(context.Background(), nil); err != nil {
			k.w.job.Logf("Warning: the state of %s could not be saved yet: %v", k.w.job.Subject(), err)
		}
	}
}

// hand hands in the checkpoint of now, unless nothing moved. With outputs it is the
// last one.
func (k *keeper) hand(ctx context.Context, outputs map[string]output) error {
	c, err := readCheckpoint(k.w.checkpointPath())
	if err != nil {
		return err
	}
	if outputs == nil {
		if bytes.Equal(c.Checkpoint.Latest, k.last) {
			return nil
		}
		outputs = c.outputs(nil)
	}
	next := k.w.doc.next(c, outputs)
	body, err := job.Marshal(next)
	if err != nil {
		return err
	}
	if err := k.lock.Write(ctx, body); err != nil {
		return err
	}
	k.w.doc, k.last = next, c.Checkpoint.Latest
	return nil
}

// finish stops watching and hands in how it ended, with the outputs.
func (k *keeper) finish(ctx context.Context) (document, error) {
	_ = k.events.Close()
	watched := <-k.ended
	c, err := readCheckpoint(k.w.checkpointPath())
	if err != nil {
		return k.w.doc, errors.Join(watched, err)
	}
	known, err := k.w.clearOutputs(ctx, c)
	if err != nil {
		return k.w.doc, errors.Join(watched, err)
	}
	return k.w.doc, errors.Join(watched, k.hand(ctx, c.outputs(known)))
}
