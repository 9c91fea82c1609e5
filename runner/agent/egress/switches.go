package egress

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Switched is a class that the customer switched off.
type Switched struct {
	Class  string    `json:"class"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Switches are read from the customer's file each time that somebody asks: a change
// counts at once. Safe for concurrent use.
type Switches struct {
	path string

	mu   sync.Mutex
	info fs.FileInfo
	off  []Switched
	err  error
}

// At returns the switches of a file, which need not exist.
func At(path string) *Switches { return &Switches{path: path} }

type offFile struct {
	Off []Switched `json:"off"`
}

// All returns what is off. With an error every class is that can be.
func (s *Switches) All() ([]Switched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.info, s.off, s.err = nil, nil, nil
	case err != nil:
		s.info, s.off, s.err = nil, everything(), err
	case s.info == nil || !os.SameFile(info, s.info) || !info.ModTime().Equal(s.info.ModTime()) || info.Size() != s.info.Size():
		s.info = info
		s.off, s.err = read(s.path)
	}
	return slices.Clone(s.off), s.err
}

// Off says whether a class is switched off.
func (s *Switches) Off(class string) bool {
	if s == nil {
		return false
	}
	off, _ := s.All()
	return slices.ContainsFunc(off, func(o Switched) bool { return o.Class == class })
}

func read(path string) ([]Switched, error) {
	var f offFile
	if _, err := datadir.ReadJSON(path, &f); err != nil {
		return everything(), err
	}
	for _, o := range f.Off {
		if class, known := Find(o.Class); !known || class.Off == "" {
			return everything(), fmt.Errorf("%s: %q is no class that can be switched off", path, o.Class)
		}
	}
	return f.Off, nil
}

// everything is off when it cannot be known what the customer wants.
func everything() (off []Switched) {
	for _, c := range Classes() {
		if c.Off != "" {
			off = append(off, Switched{Class: c.Name, By: "runner", Reason: "the file that says what is switched off cannot be read"})
		}
	}
	return off
}

// Set switches a class; changed is false when it was so already.
func Set(path string, want Switched, off bool) (changed bool, err error) {
	class, known := Find(want.Class)
	if !known {
		return false, fmt.Errorf("no class %q; berth-runner egress list shows all", want.Class)
	}
	if class.Off == "" {
		return false, fmt.Errorf("%s cannot be switched off: %s", want.Class, class.Why)
	}
	var f offFile
	if _, err := datadir.ReadJSON(path, &f); err != nil {
		return false, fmt.Errorf("%w: correct or remove the file", err)
	}
	before := slices.Clone(f.Off)
	f.Off = slices.DeleteFunc(f.Off, func(o Switched) bool { return o.Class == want.Class })
	if off == (len(f.Off) != len(before)) {
		return false, nil
	}
	if off {
		f.Off = append(f.Off, want)
		slices.SortFunc(f.Off, func(a, b Switched) int { return strings.Compare(a.Class, b.Class) })
	}
	return !reflect.DeepEqual(before, f.Off), datadir.WriteJSON(path, f)
}
