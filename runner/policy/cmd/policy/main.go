// Command berth-policy holds rules against documents. The runner starts it:
//
//	berth-policy serve [--memory BYTES]    one request after another, framed (package policy)
//	berth-policy judge < REQUEST.json      one request
//
// and people, mostly through `berth policies`:
//
//	berth-policy check FILE|DIR...         load policies and say what is wrong with them
//	berth-policy test DIR...               run the tests of policies
//	berth-policy version
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/engine"
	"github.com/berth-dev/berth/runner/policy/seal"
)

// Exit codes.
const (
	exitFine   = 0
	exitFailed = 1 // a policy does not load, or a test fails
	exitUsage  = 2
)

// defaultMemory is for the one-shot form, in bytes.
const defaultMemory = 2 << 30

func main() { os.Exit(run(os.Args[1:])) }

const usage = `usage: berth-policy serve [--memory BYTES]
       berth-policy judge [--memory BYTES] < REQUEST.json
       berth-policy check [--output json] FILE|DIR...
       berth-policy test [--output json] [--rego-v0] DIR...
       berth-policy version
`

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	command, flags := args[0], flag.NewFlagSet("berth-policy", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	memory := flags.Int64("memory", defaultMemory, "")
	output := flags.String("output", "table", "")
	v0 := flags.Bool("rego-v0", false, "")
	if err := flags.Parse(args[1:]); err != nil {
		return exitUsage
	}
	if *output != "table" && *output != "json" {
		fmt.Fprintf(os.Stderr, "--output is %q: table or json\n", *output)
		return exitUsage
	}
	f := form{json: *output == "json", v0: *v0}
	switch command {
	case "serve":
		return closed(*memory, serve)
	case "judge":
		return closed(*memory, judge)
	case "check":
		return f.check(flags.Args())
	case "test":
		return f.test(flags.Args())
	case "version":
		fmt.Println(engine.Name())
		return exitFine
	}
	fmt.Fprint(os.Stderr, usage)
	return exitUsage
}

// closed runs what looks at rules of others without any way out of the process.
func closed(memory int64, work func(in io.Reader, out io.Writer) error) int {
	err := errors.Join(seal.Limits(memory), seal.Everything())
	if err == nil {
		err = work(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return exitFine
}

// serve answers requests until nobody asks any more. It ends after a reply if something that
// ran out of time still runs.
func serve(in io.Reader, out io.Writer) error {
	e := engine.New()
	for request := range requests(in) {
		if request.err != nil {
			return request.err
		}
		raw, err := reply(e, request.raw)
		if err != nil {
			return err
		}
		if err := policy.WriteFrame(out, json.RawMessage(raw), policy.MaxReply); err != nil {
			return err
		}
		if e.Dirty() {
			return nil
		}
	}
	return nil
}

type request struct {
	raw []byte
	err error
}

// requests reads ahead, so that the process ends with the process that started it, also while it works.
func requests(in io.Reader) <-chan request {
	all := make(chan request)
	go func() {
		buffered := bufio.NewReader(in)
		for {
			raw, err := policy.ReadFrame(buffered, policy.MaxRequest)
			if errors.Is(err, io.EOF) {
				os.Exit(exitFine)
			}
			all <- request{raw, err}
			if err != nil {
				return
			}
		}
	}()
	return all
}

func reply(e *engine.Engine, raw []byte) ([]byte, error) {
	var r policy.Request
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("the request is no JSON of the contract: %w", err)
	}
	return engine.Encode(e.Judge(context.Background(), r))
}

// judge answers one request.
func judge(in io.Reader, out io.Writer) error {
	raw, err := io.ReadAll(io.LimitReader(in, policy.MaxRequest+1))
	if err != nil {
		return err
	}
	if len(raw) > policy.MaxRequest {
		return fmt.Errorf("the request has more than %d bytes", policy.MaxRequest)
	}
	answered, err := reply(engine.New(), bytes.TrimSpace(raw))
	if err != nil {
		return err
	}
	_, err = out.Write(append(answered, '\n'))
	return err
}
