// Command mkimage makes a container image of files, without Docker, and pushes
// it to a registry. It prints the image's name with its digest:
//
//	mkimage 127.0.0.1:16452/team/web:1 .bin/web
//	mkimage --base rootfs.tar --entry /bin/sh 127.0.0.1:16452/team/tools:1 run.sh:/run.sh
//
// Each argument after the name is FILE or FILE:PATH-IN-THE-IMAGE; a directory
// is taken with all that is in it. The first one is what the image runs, unless
// --entry says otherwise. The same files make the same digest.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func main() {
	c := content{Arch: runtime.GOARCH}
	flag.StringVar(&c.Base, "base", "", "`tar` file of a root file system to put below")
	flag.StringVar(&c.Entry, "entry", "", "`path` in the image of what it runs")
	flag.StringVar(&c.User, "user", "65532:65532", "`uid[:gid]` that it runs as")
	flag.StringVar(&c.Arch, "arch", c.Arch, "`architecture` of the executables")
	flag.Func("cmd", "default `argument`; may be given again", func(arg string) error {
		c.Args = append(c.Args, arg)
		return nil
	})
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: mkimage [FLAG]... REGISTRY/NAME:TAG FILE[:PATH]...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 || (flag.NArg() == 1 && c.Base == "") {
		flag.Usage()
		os.Exit(2)
	}
	for _, arg := range flag.Args()[1:] {
		from, to, _ := strings.Cut(arg, ":")
		c.Files = append(c.Files, file{from, to})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	digest, err := push(ctx, flag.Arg(0), c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

// push makes the image and returns its name with the digest.
func push(ctx context.Context, to string, c content) (string, error) {
	// As in every registry client: plain http to loopback, https elsewhere.
	tag, err := name.NewTag(to, name.StrictValidation)
	if err != nil {
		return "", err
	}
	image, err := c.image()
	if err != nil {
		return "", err
	}
	if err := remote.Write(tag, image, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("push %s: %w", tag, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	return tag.Context().Digest(digest.String()).Name(), nil
}
