//go:build unix

package seal

import (
	"io/fs"
	"syscall"
	"testing"
	"time"
)

// stated is a file of a mode and an owner.
type stated struct {
	mode fs.FileMode
	uid  uint32
}

func (stated) Name() string        { return "" }
func (stated) Size() int64         { return 0 }
func (s stated) Mode() fs.FileMode { return s.mode }
func (stated) ModTime() time.Time  { return time.Time{} }
func (stated) IsDir() bool         { return false }
func (s stated) Sys() any          { return &syscall.Stat_t{Uid: s.uid} }

func TestWide(t *testing.T) {
	t.Parallel()
	const service, root = 65532, 0
	tests := []struct {
		name  string
		mode  fs.FileMode
		owner uint32
		self  int
		want  bool
	}{
		{name: "our own", mode: 0o600, owner: service, self: service},
		{name: "our own that a group reads", mode: 0o640, owner: service, self: service, want: true},
		{name: "root's that our group reads, as Kubernetes mounts it", mode: 0o440, owner: root, self: service},
		{name: "root's that a group writes", mode: 0o660, owner: root, self: service, want: true},
		{name: "root's that everybody reads", mode: 0o444, owner: root, self: service, want: true},
		{name: "we are root, and a group reads it", mode: 0o640, owner: root, self: root, want: true},
		{name: "another user's that a group reads", mode: 0o640, owner: 1000, self: service, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := wide(stated{tt.mode, tt.owner}, tt.self); got != tt.want {
				t.Errorf("wide is %v, want %v", got, tt.want)
			}
		})
	}
}
