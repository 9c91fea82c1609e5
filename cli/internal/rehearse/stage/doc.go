// Package stage makes the folder that a rehearsal syncs: a copy of the app folder in
// which stand-ins take the place of parts that cannot be tried here, such as one
// whose repository cannot be reached or whose type this version does not deploy. It
// also says which parts these are ([Obstacles], [Hopeless]). A stand-in keeps the name
// of its part, what it needs and what starts it, so that all others are tried.
//
// Each stand-in says so with the key berth.stand_in; the control plane refuses such
// a release for an install that is no rehearsal.
package stage
