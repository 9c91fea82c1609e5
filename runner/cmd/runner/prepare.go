package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/oci"
)

// prepareCommand makes what `berth-runner registry` serves, for one that may
// only read it.
func (s *settings) prepareCommand() *cobra.Command {
	return &cobra.Command{
		Use: "prepare", Short: "Make the folder of images, when it is not there", Args: noArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			if _, err := oci.Open(dir.Artifacts()); err != nil {
				return fmt.Errorf("own registry: %w", err)
			}
			return nil
		},
	}
}
