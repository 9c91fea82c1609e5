// Command berth is the command line of Berth: the daily verbs (sync, deploy,
// approve, logs, status, why), the nouns behind them, and the system for one
// machine (up, down).
//
// Every noun has its file. A command does four things: read its flags, call the
// API, wait when asked to, and print. What it prints goes to stdout in one of
// the formats of -o; everything about its progress goes to stderr.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Getenv)
	stop()
	os.Exit(code)
}

// streams are where a command reads from and writes to.
type streams struct {
	in       io.Reader
	out, err io.Writer
}
