// Command images makes the container images of Berth's executables, one OCI
// layout per image, and pushes them with --push:
//
//	images --executables .bin/images/build --packages .bin/images/packages \
//	  --version 1.4.0 --revision COMMIT --epoch SECONDS --out .bin/images
//
// The executables of an architecture are in a folder of its name, and so are
// its Debian packages. It prints each image's name and digest. The same input
// makes the same digests. With --needs it prints what has to be there instead;
// with --check it looks into images that were made.
// `make images` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	var epoch int64
	var arch string
	flag.StringVar(&o.executables, "executables", "", "`folder` of executables, with one folder per architecture")
	flag.StringVar(&o.packages, "packages", "", "`folder` of Debian packages, with one folder per architecture")
	flag.StringVar(&o.version, "version", "", "`version` of the executables, and tag of the images")
	flag.StringVar(&o.revision, "revision", "", "`commit` they are built from")
	flag.Int64Var(&epoch, "epoch", 0, "its time, `seconds` since 1970")
	flag.StringVar(&o.out, "out", "", "`folder` to write layouts to")
	flag.StringVar(&arch, "arch", "amd64,arm64", "`architectures`")
	flag.StringVar(&o.license, "license", "LICENSE", "`file` with the license of Berth")
	flag.StringVar(&o.licenses.Modules, "modules", "", "`folder` of Go's modules, GOMODCACHE, with their licenses")
	flag.StringVar(&o.licenses.GoRoot, "goroot", "", "`folder` of Go, GOROOT, with its license")
	check := flag.Bool("check", false, "only look into the layouts of --out, and run what is in them")
	emulator := flag.String("emulator", "", "static `program` that runs arm64, for --check on another machine")
	needs := flag.Bool("needs", false, "only print which executables and packages the images need")
	flag.StringVar(&o.push, "push", "", "`HOST/PREFIX` of repositories to push to")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: images [FLAG]... [IMAGE]...")
		flag.PrintDefaults()
	}
	flag.Parse()
	chosen, err := choose(flag.Args())
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *needs {
		fmt.Print(needsOf(chosen))
		return
	}
	if *check {
		if err := checkAll(ctx, o.out, chosen, *emulator); err != nil {
			fail(err)
		}
		return
	}
	if o.executables == "" || o.out == "" || o.version == "" || epoch <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	o.created, o.arches = time.Unix(epoch, 0).UTC(), strings.Split(arch, ",")
	for _, r := range chosen {
		digest, err := o.make(ctx, r)
		if err != nil {
			fail(fmt.Errorf("%s: %w", r.Name, err))
		}
		fmt.Println(r.Name, digest)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "images:", err)
	os.Exit(1)
}

// needsOf lists what has to be there for images, one a line.
func needsOf(chosen []recipe) string {
	var lines []string
	for _, r := range chosen {
		for _, name := range r.Executables {
			lines = append(lines, "executable "+name+"\n")
		}
		if r.Packages {
			lines = append(lines, "packages\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

// choose returns the recipes with these names, all of them without any.
func choose(names []string) ([]recipe, error) {
	if len(names) == 0 {
		return recipes, nil
	}
	var chosen []recipe
	var errs []error
	for _, name := range names {
		i := slices.IndexFunc(recipes, func(r recipe) bool { return r.Name == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("there is no image %q", name))
			continue
		}
		chosen = append(chosen, recipes[i])
	}
	return chosen, errors.Join(errs...)
}

// replaceDir puts a finished folder in the place of an older one.
func replaceDir(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}
