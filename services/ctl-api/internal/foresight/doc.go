// Package foresight says what a preview cannot know. A workflow that only plans
// applies nothing, so what a component reads of another one is as it was before:
// its own plan leaves out what the other's change brings.
//
// Reads finds what a block's templates read, and Of compares that with the plans
// of what they read from. Both do no I/O; package workflow collects the rows.
package foresight
