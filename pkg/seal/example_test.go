package seal_test

import (
	"fmt"
	"log"

	"github.com/berth-dev/berth/pkg/seal"
)

func Example() {
	runner, err := seal.GenerateIdentity()
	if err != nil {
		log.Fatal(err)
	}
	customer, err := seal.GenerateIdentity() // the recovery key
	if err != nil {
		log.Fatal(err)
	}
	purpose := seal.Purpose{OrgID: "org_1", InstallID: "ins_1", Kind: seal.KindInput, Path: seal.Path("db", "password")}
	sealed, err := seal.Seal([]string{runner.Recipient(), customer.Recipient()}, purpose, []byte("correct-horse"))
	if err != nil {
		log.Fatal(err)
	}
	opened, err := seal.Open(customer, purpose, sealed)
	fmt.Println(string(opened), err)

	purpose.InstallID = "ins_2"
	_, err = seal.Open(runner, purpose, sealed)
	fmt.Println(err != nil)
	// Output:
	// correct-horse <nil>
	// true
}
