// Command release makes what is published of a version: one archive of all
// executables per platform, the install script, checksums, and the signed list
// of them and of the container images:
//
//	release --executables .bin/release/build --images DIGESTS --key FILE \
//	  --version 1.4.0 --commit COMMIT --epoch SECONDS --out .bin/release/1.4.0
//
// The executables of a platform are in a folder OS_ARCH. The key is an Ed25519
// key in PEM (PKCS #8). The same input makes the same bytes. `make release`
// calls it.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/berth-dev/berth/dev/image"
	"github.com/berth-dev/berth/pkg/capsule"
)

func main() {
	var o options
	var keyFile string
	var epoch int64
	var licenses image.Licenses
	flag.StringVar(&o.executables, "executables", "", "`folder` of executables, with one folder per platform")
	flag.StringVar(&o.tree, "tree", ".", "`folder` of the source tree")
	flag.StringVar(&licenses.Modules, "modules", "", "`folder` of Go's modules, GOMODCACHE, with their licenses")
	flag.StringVar(&licenses.GoRoot, "goroot", "", "`folder` of Go, GOROOT, with its license")
	flag.StringVar(&o.images, "images", "", "`file` with lines NAME DIGEST")
	flag.StringVar(&keyFile, "key", "", "`file` with the private key")
	flag.StringVar(&o.version, "version", "", "`version` of the executables")
	flag.StringVar(&o.commit, "commit", "", "`commit` they are built from")
	flag.Int64Var(&epoch, "epoch", 0, "its time, `seconds` since 1970")
	flag.StringVar(&o.out, "out", "", "`folder` to write to")
	flag.Parse()
	if o.executables == "" || o.out == "" || o.version == "" || keyFile == "" || epoch <= 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	o.created, o.terms = time.Unix(epoch, 0).UTC(), licenses.Of
	if err := run(o, keyFile); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(o options, keyFile string) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	if o.key, err = capsule.ParsePrivateKey(text); err != nil {
		return fmt.Errorf("%s: %w", keyFile, err)
	}
	return o.make()
}
