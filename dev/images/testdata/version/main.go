// Command version is an executable that runs, says so, and links a module.
package main

import (
	_ "crypto/sha256" // which digests are made with
	"fmt"

	"github.com/opencontainers/go-digest"
)

func main() { fmt.Println("1.4.0", digest.FromString("1.4.0")) }
