package main

import (
	"github.com/spf13/cobra"
)

// pageSize is how many items are asked for at once, the most that is given.
const pageSize = 500

// limitFlag adds --limit to a command that lists.
func limitFlag(cmd *cobra.Command) *int {
	limit := new(int)
	cmd.Flags().IntVar(limit, "limit", 100, "show at most this many; 0 for all")
	return limit
}

// collect reads pages until there is no more, or enough.
func collect[T any](limit int, page func(limit int, after *string) (items []T, next string, err error)) ([]T, error) {
	var all []T
	var after *string
	for {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(all))
		}
		items, next, err := page(size, after)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if next == "" || limit > 0 && len(all) >= limit {
			return all, nil
		}
		after = &next
	}
}
