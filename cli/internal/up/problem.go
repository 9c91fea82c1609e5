package up

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Problem is an error that people can do something about.
type Problem struct {
	What   string // one line, lower case
	Advice string // what to do, one line
	Err    error  // the cause, when there is one to branch on
}

// Error implements error.
func (p *Problem) Error() string { return p.What }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Remedy says what to do.
func (p *Problem) Remedy() string { return p.Advice }

func problem(err error, advice, format string, args ...any) error {
	return &Problem{What: fmt.Sprintf(format, args...), Advice: advice, Err: err}
}

// onDisk tells the failures of writing apart that people know and can end.
func onDisk(path string, err error) error {
	const elsewhere = "or set BERTH_DATA to another folder"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return problem(err, "free some space there, "+elsewhere, "no space left on the disk of the data folder %s", path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return problem(err, "make it writable for you, "+elsewhere, "the data folder %s cannot be written", path)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return problem(err, "set BERTH_DATA to a folder that is empty or does not exist", "%s cannot be the data folder: it is, or is in, a file", path)
	}
	return problem(err, "set BERTH_DATA to another folder", "data folder %s: %v", path, err)
}
