package disk

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// DefaultLeast is the room that new work wants where nothing else is set: a
	// Terraform provider or a chart with its images fits, most of the time. A
	// small disk is asked for a tenth of itself.
	DefaultLeast = 256 << 20
	// fullBelow is where a disk is called full although some bytes would fit:
	// the next file will not.
	fullBelow = 256 << 10
	// leastFiles is how many more files must fit on file systems that count
	// them.
	leastFiles = 200
)

// Full reports whether err comes of a disk, or a quota, that is used up.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// unwritable reports whether err says something of the disk itself, not of what
// was to be written.
func unwritable(err error) bool {
	return Full(err) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EIO)
}

// Room is what is left in a directory.
type Room struct {
	Dir         string `json:"dir"`
	Free        int64  `json:"free_bytes"`
	Total       int64  `json:"total_bytes"`
	Least       int64  `json:"least_bytes"` // what new work wants
	FilesFree   int64  `json:"files_free,omitempty"`
	CountsFiles bool   `json:"counts_files,omitempty"`
	// Failed is what the last write said that did not work; "" when writes work.
	Failed string `json:"failed,omitempty"`
}

// Measure looks at the file system of dir. least is the room that new work
// wants; 0 means DefaultLeast, or a tenth of a small disk.
func Measure(dir string, least int64) (Room, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Room{Dir: dir}, fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	block := fs.Bsize
	r := Room{
		Dir: dir, Free: int64(fs.Bavail) * block, Total: int64(fs.Blocks) * block,
		FilesFree: int64(fs.Ffree), CountsFiles: fs.Files > 0, Least: least,
	}
	if least == 0 {
		r.Least = min(DefaultLeast, r.Total/10)
	}
	return r, nil
}

// Low reports whether there is too little room to begin something.
func (r Room) Low() bool { return r.Full() || r.Free < r.Least }

// Full reports whether nothing can be written any more, or next to nothing.
func (r Room) Full() bool {
	return r.Failed != "" || r.Total > 0 && r.Free < fullBelow || r.CountsFiles && r.FilesFree < leastFiles
}

// Problem says what is wrong and what to do, "" while there is room enough.
func (r Room) Problem() string {
	if !r.Low() {
		return ""
	}
	left := fmt.Sprintf("%s of %s are free", Size(r.Free), Size(r.Total))
	if r.CountsFiles && r.FilesFree < leastFiles {
		left += fmt.Sprintf(", and %d more files fit", r.FilesFree)
	}
	text := fmt.Sprintf("disk full: the data directory %s has too little room (%s, new work needs %s)", r.Dir, left, Size(r.Least))
	if r.Failed != "" && (r.Free >= r.Least || !r.quota()) {
		text = fmt.Sprintf("the data directory %s cannot be written (%s; %s)", r.Dir, r.Failed, left)
		if r.quota() {
			text = "disk full: " + text
		}
	}
	return text + ": delete what is not needed there, or enlarge the disk; the runner then continues by itself"
}

// quota reports whether the disk has room and this user has not.
func (r Room) quota() bool {
	return r.Failed == syscall.ENOSPC.Error() || r.Failed == syscall.EDQUOT.Error()
}

// Error is a failed write with the room as it was then. errors.Is still finds
// the cause.
type Error struct {
	Room Room
	Err  error
}

// Error names the directory, how much is free, and what to do.
func (e *Error) Error() string {
	text := e.Room.Problem()
	if text == "" { // there is room again
		text = "disk full: the data directory " + e.Room.Dir + " had no room for a moment"
	}
	return text + " (" + e.Err.Error() + ")"
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Explain makes an error that comes of a full disk one that says so for the
// data directory dir; any other comes back as it is.
func Explain(dir string, least int64, err error) error {
	var said *Error
	if err == nil || !Full(err) || errors.As(err, &said) {
		return err
	}
	room, _ := Measure(dir, least)
	room.Failed = cause(err)
	return &Error{Room: room, Err: err}
}

// cause is the last word of a chain of errors.
func cause(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// Size writes a number of bytes for people.
func Size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	div, exp := int64(unit), 0
	for m := n / unit; m >= unit && exp < 4; m /= unit {
		div *= unit
		exp++
	}
	return fmt.Sprintf("%.1f %ciB", float64(n)/float64(div), "KMGTP"[exp])
}
