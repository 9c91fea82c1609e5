package trees

import (
	"errors"
	"io/fs"
	"syscall"
	"time"
)

// stamp is what the file system says of a file without reading it.
type stamp struct {
	dev, ino     uint64
	size         int64
	mode         fs.FileMode
	uid          uint32
	mtime, ctime int64 // ns
}

var errNoStamp = errors.New("the file system does not say enough of its files")

func stampOf(info fs.FileInfo) (stamp, error) {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, errNoStamp
	}
	return stamp{
		dev: sys.Dev, ino: sys.Ino, size: info.Size(), mode: info.Mode(), uid: sys.Uid,
		mtime: sys.Mtim.Nano(), ctime: sys.Ctim.Nano(),
	}, nil
}

// settled is how long a file must be unchanged before its stamp tells a later change:
// file systems count time in ticks, and two writes within one leave the same stamp.
const settled = 50 * time.Millisecond

// tells reports whether a change after now would leave another stamp.
func (s stamp) tells(now time.Time) bool {
	return now.UnixNano()-max(s.mtime, s.ctime) > int64(settled)
}

// sameFile compares all but the time that each new link of a file changes.
func (s stamp) sameFile(t stamp) bool {
	s.ctime, t.ctime = 0, 0
	return s == t
}
