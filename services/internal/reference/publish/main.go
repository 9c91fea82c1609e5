// Command publish prints the document that a service publishes of its contract.
//
//	publish ctl-api > openapi.json
package main

import (
	"fmt"
	"os"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/berth-dev/berth/services/internal/reference"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: publish SERVICE, in services/")
		os.Exit(2)
	}
	if err := publish(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func publish(service string) error {
	spec, err := openapi3.NewLoader().LoadFromFile(service + "/internal/apigen/openapi.json")
	if err != nil {
		return err
	}
	document, err := reference.Document(spec, "", reference.Of(service))
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(document)
	return err
}
