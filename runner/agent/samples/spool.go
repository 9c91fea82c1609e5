// Package samples keeps a runner's own numbers until the control plane has them. It decides
// nothing about what is in them (package gauges) and when they are sent.
package samples

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Most is how many samples wait, of one in 5 minutes: a day. The oldest go first.
const Most = 24 * 12

// Spool is what waits. It is on disk only once a sample could not be sent: normally nothing is
// written. It is for one goroutine.
type Spool struct {
	path    string
	waiting []jobspec.Sample
	onDisk  bool
}

// Open takes up what an earlier agent left at path. A file that cannot be read is begun again:
// these are numbers, and the next come soon.
func Open(path string) *Spool {
	s := &Spool{path: path}
	raw, err := os.ReadFile(path)
	if s.onDisk = !errors.Is(err, fs.ErrNotExist); err == nil && json.Unmarshal(raw, &s.waiting) != nil {
		s.waiting = nil
	}
	s.waiting = s.waiting[max(0, len(s.waiting)-Most):]
	return s
}

// Add puts a sample behind the others.
func (s *Spool) Add(sample jobspec.Sample) {
	s.waiting = append(s.waiting, sample)
	s.waiting = slices.Clone(s.waiting[max(0, len(s.waiting)-Most):])
}

// Next are the oldest that wait, for one report.
func (s *Spool) Next() []jobspec.Sample {
	return s.waiting[:min(len(s.waiting), jobspec.MaxSamples)]
}

// Done forgets the oldest n, which the control plane has or does not take.
func (s *Spool) Done(n int) {
	s.waiting = slices.Clone(s.waiting[n:])
}

// Drop forgets all.
func (s *Spool) Drop() { s.waiting = nil }

// Save makes the file say what waits: no file says that nothing does.
func (s *Spool) Save() error {
	if len(s.waiting) > 0 {
		s.onDisk = true
		return datadir.WriteJSON(s.path, s.waiting)
	}
	if !s.onDisk {
		return nil
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.onDisk = false
	return nil
}
