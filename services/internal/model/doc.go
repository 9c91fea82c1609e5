// Package model has the words that services and their database share: the states
// of every noun, the reasons of what waits, the channels of wake-ups, and the
// shape of what a job came to. Columns of these types carry them into the rows
// (services/sqlc.yaml), so a misspelt state does not compile; the tests here hold
// the words against the CHECKs of the schema and docs/state-machines.md, and let
// no service spell one of them itself.
package model
