//go:build !weakened

package weakened

import "errors"

// Variable names nothing: there is nothing to turn off.
const Variable = ""

// Built says whether this executable can be weakened.
const Built = false

// Is tells whether a defence is turned off.
func Is(Defence) bool { return false }

// Decode is for what Is guards: it is never reached.
func Decode(string, any) error { return errors.New("not built with the tag weakened") }
