package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"log"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

func ExampleVerify() {
	public, private, err := capsule.GenerateKey()
	if err != nil {
		log.Fatal(err)
	}
	writer := chain.Signer{Chain: "ins_1", Key: private}
	var file bytes.Buffer
	var head chain.Head
	for _, record := range []chain.Record{
		{Actor: "usr_1", Kind: chain.Intent, What: "deploy web", Effect: "sha256:e", Capsule: "sha256:c", Job: "job_1"},
		{Actor: "runner", Kind: chain.Outcome, What: "done", Intent: 1, Result: "succeeded"},
	} {
		line, err := chain.Next(head, record, writer)
		if err != nil {
			log.Fatal(err)
		}
		file.Write(append(line.Raw, '\n'))
		head = line.Head
	}
	options := chain.VerifyOptions{Keys: map[string]ed25519.PublicKey{capsule.KeyID(public): public}}
	report, err := chain.Verify(bytes.NewReader(file.Bytes()), options)
	fmt.Println(report.OK(), report.Records, report.Effects, err)

	forged := bytes.Replace(file.Bytes(), []byte("deploy web"), []byte("deploy api"), 1)
	report, err = chain.Verify(bytes.NewReader(forged), options)
	fmt.Println(report.OK(), report.FirstBad, err)
	// Output:
	// true 2 1 <nil>
	// false 1 <nil>
}
