package api

// PageSize is how many items are asked for at once, the most that is given.
const PageSize = 500

// Collect reads pages until there is no more, or enough.
func Collect[T any](limit int, page func(limit int, after *string) (items []T, next string, err error)) ([]T, error) {
	var all []T
	var after *string
	for {
		size := PageSize
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
