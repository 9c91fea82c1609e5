// Command devregistry is a registry for images under development: plain http,
// no accounts, so it listens on loopback only. What is pushed is kept in a
// directory and is there again after a restart.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// finishTimeout is how long pulls may go on after the registry was asked to stop.
const finishTimeout = 3 * time.Second

func main() {
	listen := flag.String("listen", "127.0.0.1:16452", "loopback `address` to serve on")
	dir := flag.String("data", "", "`directory` of the images")
	flag.Parse()
	if *dir == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *dir); err != nil {
		slog.Error("devregistry stopped", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, dir string) error {
	address, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return err
	}
	if !address.IP.IsLoopback() {
		return errors.New("--listen: anybody could push there; give a loopback address")
	}
	store, err := open(dir)
	if err != nil {
		return err
	}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: store, ReadHeaderTimeout: finishTimeout}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
		defer cancel()
		done <- server.Shutdown(ctx)
	}()
	slog.Info("devregistry serves", "address", listen, "data", dir)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}
