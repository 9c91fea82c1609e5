package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/runner/evidence"
)

func (s *settings) evidenceCommand() *cobra.Command {
	var since, out string
	cmd := &cobra.Command{
		Use: "evidence", Short: "Export what an auditor needs into one folder that verifies offline", Args: noArgs,
		Long: "Writes the chain, the signed orders and plans of the changes since a time, what rules and guardrails said, consents, the egress ledger, digests of logs, a list of " +
			"changes as CSV and JSON, and an index signed by this machine's key. No secret is in it. Check it with berth-verify evidence DIR.",
		Example: "  berth-runner evidence --since 2160h --out evidence-q4",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usageError{errors.New("name a directory with --out")}
			}
			from, err := parseSince(since, time.Now())
			if err != nil {
				return err
			}
			dir, err := s.dir()
			if err != nil {
				return err
			}
			index, err := evidence.Export(evidence.Wanted{Dir: dir, Out: out, Since: from, Now: time.Now(), Version: version.Get().String()})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "evidence of %s is in %s, the chain up to record %d\ncheck it with: berth-verify evidence %s\n",
				index.InstallID, out, index.ChainHead.Seq, out)
			return nil
		},
	}
	cmd.Flags().StringVar(&since, "since", "2160h", "changes from then on: a duration back from now, or a time in RFC 3339")
	cmd.Flags().StringVar(&out, "out", "", "the directory; it must not exist or be empty")
	return cmd
}
