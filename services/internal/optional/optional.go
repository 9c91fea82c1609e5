// Package optional turns what may be missing, a nil pointer, into plain values
// and back: columns that may be null, fields that a body may leave out.
package optional

// Value is the zero value for nil.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Of is nil for the zero value.
func Of[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
