//go:build !linux

package logship

import (
	"os"
	"time"
)

// watchInterval is how late a line may be noticed where the system has no
// notification that we use.
const watchInterval = 100 * time.Millisecond

// watch reports on the returned channel when the file has grown since the last
// report. Until stop is called it costs one goroutine.
func watch(path string) (grown <-chan struct{}, stop func(), err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	out, quit, done := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(watchInterval)
		defer ticker.Stop()
		for size := info.Size(); ; {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			if info, err := os.Stat(path); err == nil && info.Size() != size {
				size = info.Size()
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out, func() { close(quit); <-done }, nil
}
