// Package usage marks errors of those who write a command line: they end a
// command with a code of their own.
package usage

import "fmt"

// Error is an error of the command line.
type Error struct{ Err error }

// Error implements error.
func (e Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e Error) Unwrap() error { return e.Err }

// Errorf makes an Error as fmt.Errorf does.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }
