package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/states"
	"github.com/berth-dev/berth/runner/agent/unlock"
)

// unlockLook is how often the agent's answer is looked for.
const unlockLook = 200 * time.Millisecond

func (s *settings) stateUnlockCommand() *cobra.Command {
	var force bool
	var confirm string
	cmd := &cobra.Command{
		Use: "unlock RESOURCE", Short: "Show who holds the lock of a state, and free it when its job has ended", Args: oneResource,
		Long: `Shows who holds the lock of a component's state, or of the sandbox's, and frees it. The next
job of the resource does that by itself; the command is for what cannot wait.

While the job lives the lock stays. With --force --confirm RESOURCE it goes all the same: the job is
shut out of its state first, so what its engine still writes is kept as evidence and is
not the state any more. What that engine has changed outside is then in no state: make a
plan to see it. The runner's chain records who held the lock.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if force && confirm != args[0] {
				return usageError{fmt.Errorf("--force can leave changes that are in no state: confirm it with --confirm %s; nothing was done", args[0])}
			}
			dir, err := s.dir()
			if err != nil {
				return err
			}
			return freeLock(cmd.Context(), cmd.OutOrStdout(), dir, unlock.Request{Name: args[0], Force: force})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when the job has not ended")
	cmd.Flags().StringVar(&confirm, "confirm", "", "the resource's name, to confirm --force")
	return cmd
}

func freeLock(ctx context.Context, to io.Writer, dir datadir.Dir, r unlock.Request) error {
	var err error
	if r.Resource, err = resourceID(dir, r.Name); err != nil {
		return err
	}
	if !dir.Locked() {
		return errors.New("no agent is running on this data directory, and only it can ask for the lock: start it first")
	}
	seen, err := askAgent(ctx, dir, r)
	if err != nil {
		return err
	}
	if seen.Held == nil {
		_, err := fmt.Fprintf(to, "nobody holds the lock of %s\n", visible.Line(r.Name))
		return err
	}
	showHolder(to, *seen.Held)
	r.Free, r.LockID = true, seen.Held.LockID
	if _, err := askAgent(ctx, dir, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "the lock of %s is free\n", visible.Line(r.Name))
	return err
}

// resourceID finds a resource by the states that are kept of it; one without any is named
// by its id.
func resourceID(dir datadir.Dir, name string) (string, error) {
	kept, err := states.Store{Dir: dir.States()}.History(name)
	switch {
	case err == nil:
		return kept[0].ResourceID, nil
	case errors.Is(err, states.ErrNone) && strings.HasPrefix(name, "res"):
		return name, nil
	}
	return "", err
}

func showHolder(to io.Writer, h unlock.Held) {
	ended := "has ended (" + h.JobState + ")"
	switch {
	case h.Here:
		ended = "is still running on this machine"
	case h.Alive:
		ended = "has not ended (" + h.JobState + ")"
	}
	fmt.Fprintf(to, "held by attempt %d of job %s since %s, which %s\n", h.Attempt, visible.Line(h.JobID), h.LockedAt.UTC().Format(time.RFC3339), visible.Line(ended))
	if h.Who != "" || h.Operation != "" {
		fmt.Fprintf(to, "Terraform says: %s %s\n", visible.Line(h.Who), visible.Line(h.Operation))
	}
}

// askAgent has the running agent do a request.
func askAgent(ctx context.Context, dir datadir.Dir, r unlock.Request) (unlock.Request, error) {
	r.AskedAt = time.Now().UTC()
	if err := datadir.WriteJSON(dir.Unlock(), r); err != nil {
		return r, err
	}
	deadline := time.After(unlock.Patience)
	for {
		var got unlock.Request
		if _, err := datadir.ReadJSON(dir.Unlock(), &got); err != nil {
			return r, err
		}
		if got.AskedAt.Equal(r.AskedAt) && !got.DoneAt.IsZero() {
			if got.Error != "" {
				return got, errors.New(got.Error)
			}
			return got, nil
		}
		select {
		case <-time.After(unlockLook):
		case <-deadline:
			return r, errors.New("the agent has not answered: is it connected? see berth-runner status")
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}
