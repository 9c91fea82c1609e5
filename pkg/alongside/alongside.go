// Package alongside runs pure work on another core.
package alongside

// Run starts f and returns what waits for its result, as often as it is called.
// What f panics with, the one who waits panics with: the caller's recovery counts,
// and a panic does not end the process.
func Run[T any](f func() T) (wait func() T) {
	var value T
	var panicked any
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { panicked = recover() }()
		value = f()
	}()
	return func() T {
		if <-ended; panicked != nil {
			panic(panicked)
		}
		return value
	}
}
