package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/runner/agent/enginepod"
)

// enginePodCommand is the first process in the pod of an engine. The agent
// writes what it is to start; people have no use for it.
func (s *settings) enginePodCommand() *cobra.Command {
	return &cobra.Command{
		Use: "engine-pod FOLDER", Short: "Start the engine of this pod", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			code, err := enginepod.Launch(enginepod.Folder(args[0]))
			if err == nil && code == 0 {
				return nil
			}
			return engineError{code: code, cause: err}
		},
	}
}

// engineError is the end of an engine that did not end well; its code is passed
// on, so that the agent sees it.
type engineError struct {
	code  int
	cause error
}

func (e engineError) Error() string {
	if e.cause != nil {
		return e.cause.Error()
	}
	return fmt.Sprintf("the engine ended with exit code %d", e.code)
}
