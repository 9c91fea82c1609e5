// Package paging cuts lists into the pages that the contract promises.
package paging

// defaultLimit is the contract's, for requests that the validator has not filled in.
const defaultLimit = 50

// Limit is how many items a page has at most.
func Limit(asked *int) int {
	if asked == nil || *asked < 1 {
		return defaultLimit
	}
	return *asked
}

// Page cuts off the one item that was read too many, to know whether there is a next
// page, and says where that starts: after the last item shown; "" for none.
func Page[T any](items []T, limit int, key func(T) string) ([]T, string) {
	if len(items) <= limit {
		return items, ""
	}
	return items[:limit], key(items[limit-1])
}
