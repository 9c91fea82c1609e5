// Package interpolate owns the template language of app configs: which strings
// are templates, what they refer to, and how they are rendered.
//
// The language is Go's text/template with those Sprig functions that give the
// same answer every time: nothing reads the network, the environment, files,
// the clock or a random source. `now` is the time given by the caller.
//
// Templates read one tree ([NewTree], [NewState]), reachable as .nuon and as
// .berth. A key that is not there is an error that names its path; nothing is
// ever rendered as an empty string by accident. Nothing is HTML-escaped.
//
// Templates come from app authors, so rendering is bounded in time, in output,
// and in the size of every value on the way (see [Options]).
package interpolate
