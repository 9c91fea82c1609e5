package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/runner/agent/enginepod"
)

// enginePodCommand is the first process in the pod of an engine. The agent
// writes what it is to start; people have no use for it.
func (s *settings) enginePodCommand() *cobra.Command {
	var bring []string
	cmd := &cobra.Command{
		Use: "engine-pod FOLDER", Short: "Start the engine of this pod", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(bring) > 0 {
				return enginepod.BringTools(args[0], bring...)
			}
			code, err := enginepod.Launch(enginepod.Folder(args[0]))
			if err == nil && code == 0 {
				return nil
			}
			return engineError{code: code, cause: err}
		},
	}
	cmd.Flags().StringArrayVar(&bring, "bring", nil, "copy this executable into FOLDER instead, for an image that does not have it")
	return cmd
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
