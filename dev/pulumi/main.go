// Command pulumilab is what the tests of the Pulumi engine need in addition to the
// real pulumi command, of which its vendor publishes no module: it is, by the name
// that it is started under,
//
//	pulumi-language-go    a language host for programs that are built already
//	pulumi-resource-lab   a provider of files on this machine
//	program               a program of these files, which its config describes
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	var err error
	switch name := filepath.Base(os.Args[0]); name {
	case "pulumi-language-go":
		err = serveLanguage()
	case "pulumi-resource-lab":
		err = serveProvider()
	case "program":
		runProgram()
	default:
		err = fmt.Errorf("pulumilab: it is nothing under the name %s", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
