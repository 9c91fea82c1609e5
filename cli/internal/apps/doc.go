// Package apps is the noun apps of the command line: what somebody does with an app
// and its folder (init, validate, lint, fmt, graph, render, variables, permissions).
package apps
