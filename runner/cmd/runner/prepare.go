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
			if err := dir.Usable(); err != nil {
				return fmt.Errorf("%w: apply the manifest with --pod-security baseline, under which the runner can read them, or give all files of the volume to its user", err)
			}
			if _, err := oci.Open(dir.Artifacts()); err != nil {
				return fmt.Errorf("own registry: %w", err)
			}
			return nil
		},
	}
}
