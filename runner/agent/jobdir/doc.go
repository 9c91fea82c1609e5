// Package jobdir is the directory of an attempt: what the agent keeps of it on
// disk, and what it reads of the engine's part without trusting it. Package job
// says what is in it and when.
package jobdir
