// Package alertwatch looks for what is wrong with an install and writes its alerts.
// What becomes of an alert is decided by package alerts; here are the sources that
// say what is wrong, one function each, and the rows.
//
// A look may come twice, or late, or from two replicas: the install's row is locked,
// rows say how far an episode has come, and a unique index holds them apart.
package alertwatch
