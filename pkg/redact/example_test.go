package redact_test

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/redact"
)

func ExampleSet() {
	secrets := redact.New()
	secrets.Add([]byte("correct-horse"), "DB_PASSWORD")
	fmt.Println(secrets.String("connect to db:5432 as app with correct-horse"))
	fmt.Println(secrets.String("Authorization: Basic Y29ycmVjdC1ob3JzZQ=="))
	// Output:
	// connect to db:5432 as app with (redacted:DB_PASSWORD)
	// Authorization: Basic (redacted:DB_PASSWORD)
}
