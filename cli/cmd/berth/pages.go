package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
)

// limitFlag adds --limit to a command that lists.
func limitFlag(cmd *cobra.Command) *int {
	limit := new(int)
	cmd.Flags().IntVar(limit, "limit", 100, "show at most this many; 0 for all")
	return limit
}

// collect is api.Collect.
func collect[T any](limit int, page func(limit int, after *string) (items []T, next string, err error)) ([]T, error) {
	return api.Collect(limit, page)
}
