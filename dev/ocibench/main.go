// Command ocibench compares how fast artifacts are pushed to, pulled from and copied
// between registries like the org's: by pkg/oci, by the libraries oras-go and
// go-containerregistry, and by the commands crane, oras and skopeo.
//
//	ocibench -registry FILE [-tools DIR] [-rounds 7] [-seed 1] [-only push,pull] [-shapes large] [-json FILE]
//
// FILE is the executable of the tests of services/builder/internal/registry, which can
// also be a registry (dev/scripts/bench-artifacts.sh builds both). In each round all
// contestants do the same once, in an order that the seed shuffles; what counts is the
// median of the rounds, and the processor time of client and registries.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		if err := work(os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "ocibench worker:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.registry, "registry", "", "executable of the registry's tests")
	flag.StringVar(&o.tools, "tools", "", "folder with crane and oras; else they are looked for in PATH, as skopeo is")
	flag.StringVar(&o.dir, "dir", "", "folder for what is moved (default: a new one in the system's)")
	flag.IntVar(&o.rounds, "rounds", 7, "how often each contestant does each thing")
	flag.Uint64Var(&o.seed, "seed", 1, "shuffles the order of the contestants in each round")
	flag.StringVar(&o.only, "only", "push,pull,copy,resume", "what to measure")
	flag.StringVar(&o.shapes, "shapes", "", "shapes of artifacts (default: all)")
	flag.StringVar(&o.who, "who", "", "contestants (default: all)")
	flag.StringVar(&o.json, "json", "", "file for the figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "ocibench:", err)
		os.Exit(1)
	}
}

type options struct {
	registry, tools, dir, only, shapes, who, json string
	rounds                                        int
	seed                                          uint64
}

func among(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

func run(ctx context.Context, o options) (err error) {
	if o.registry == "" || o.rounds < 1 {
		return fmt.Errorf("-registry is needed, and one round at least")
	}
	dir, err := os.MkdirTemp(o.dir, "ocibench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{options: o, dir: dir, random: rand.New(rand.NewPCG(o.seed, 0))} //nolint:gosec // the order of a benchmark, to be had again by its seed
	defer b.close()
	for _, at := range []**server{&b.here, &b.there} {
		if *at, err = serve(ctx, o.registry, dir); err != nil {
			return err
		}
	}
	if b.all, err = contestants(ctx, o, dir, b.here.host, b.there.host); err != nil {
		return err
	}
	var rows []row
	for _, s := range shapes {
		if !among(o.shapes, s.name) {
			continue
		}
		image, err := s.make(filepath.Join(dir, "image-"+s.name))
		if err != nil {
			return fmt.Errorf("make %s: %w", s.name, err)
		}
		for _, op := range []string{opPush, opPull, opCopy} {
			if !among(o.only, op) {
				continue
			}
			samples, err := b.compare(ctx, op, image)
			if err != nil {
				return err
			}
			rows = append(rows, summarise(op, s.name, image.bytes, samples)...)
			fmt.Println(table(rows[len(rows)-len(samples):]))
		}
		if among(o.only, "resume") && s.name == "large" {
			if err := b.resume(ctx, image); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(image.dir); err != nil {
			return err
		}
	}
	fmt.Print(verdict(rows))
	if o.json == "" {
		return nil
	}
	raw, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(raw, '\n'), 0o644)
}
