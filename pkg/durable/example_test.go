package durable_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/durable"
)

func ExampleWriteFile() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "session.json")
	for _, contents := range []string{"old", "new"} {
		if err := durable.WriteFile(path, []byte(contents), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	now, err := os.ReadFile(path)
	fmt.Println(string(now), err)
	// Output: new <nil>
}
