// Package disk looks after the room in the runner's data directory. It says
// when there is too little for new work, names a full disk as the cause of what
// failed, and keeps a reserve: a file that takes up room for as long as nothing
// else needs it, and is given up bit by bit to what must be written even then
// (how an attempt ended, and the record of it).
//
//	new work, plans, artifacts   only while Room.Low says no
//	intents                      like any other file: no record, no effect
//	reports, outcomes, states    through Guard.Insist, from the reserve
package disk
