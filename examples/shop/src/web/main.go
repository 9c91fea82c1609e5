// Command web is a small shop: a page, a list of products, and a health page.
// It needs no other service and keeps its data in memory.
//
//	web              serves
//	web probe URL    ends well when the URL answers with 200
//
// Settings come from the environment:
//
//	LISTEN        where it listens, default ":8080"
//	TITLE         the name of the shop, default "Shop"
//	PRODUCTS      a JSON file of what is sold from the start; none when empty
//	ADMIN_TOKEN   who knows it may add products; nobody may when empty
//	SESSION_KEY   what visitors' cookies are signed with; it is the same in all
//	              pods, so that each believes the cookies of the others
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	headerTimeout = 5 * time.Second
	finishTimeout = 10 * time.Second // for requests that are under way at the end
	probeTimeout  = 30 * time.Second // new pods may not be in the Service yet
	probeEvery    = 500 * time.Millisecond
	askTimeout    = 3 * time.Second // what leads to a pod that is gone is never answered
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 1:
		err = serve(ctx)
	case len(os.Args) == 3 && os.Args[1] == "probe":
		err = probe(ctx, os.Args[2])
	default:
		err = errors.New("usage: web | web probe URL")
	}
	if err != nil {
		slog.Error("web stopped", "err", err)
		os.Exit(1)
	}
}

// serve answers until ctx is done.
func serve(ctx context.Context) error {
	shop := NewShop(cmp.Or(os.Getenv("TITLE"), "Shop"), os.Getenv("ADMIN_TOKEN"), os.Getenv("SESSION_KEY"))
	if file := os.Getenv("PRODUCTS"); file != "" {
		products, err := readProducts(file)
		if err != nil {
			return err
		}
		for _, p := range products {
			shop.Add(p)
		}
	}
	server := &http.Server{
		Addr:              cmp.Or(os.Getenv("LISTEN"), ":8080"),
		Handler:           shop.Handler(),
		ReadHeaderTimeout: headerTimeout,
	}
	finished := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
		defer cancel()
		finished <- server.Shutdown(ctx)
	}()
	slog.InfoContext(ctx, "web serves", "address", server.Addr, "products", len(shop.Products()))
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-finished
}

func readProducts(file string) ([]Product, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var products []Product
	if err := json.Unmarshal(raw, &products); err != nil {
		return nil, fmt.Errorf("%s is not a list of products: %w", file, err)
	}
	for _, p := range products {
		if problem := p.problem(); problem != "" {
			return nil, fmt.Errorf("%s: %s", file, problem)
		}
	}
	return products, nil
}

// probe asks until it gets a 200.
func probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for {
		err := ask(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer well within %s: %w", url, probeTimeout, err)
		case <-time.After(probeEvery):
		}
	}
}

func ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}
