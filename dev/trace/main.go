// Command trace makes the picture of a trace in the docs, from a real run:
//
//	trace collect 127.0.0.1:4318 >spans    take spans by OTLP over HTTP, until interrupted
//	trace pick <spans >deploy-trace.json   the fullest trace among them, as lanes
//	trace draw <deploy-trace.json >deploy-trace.svg
//
// A run for it, with executables from dev/scripts/build.sh and while collect runs:
//
//	export BERTH_DATA=$(mktemp -d) OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_METRICS_EXPORTER=none
//	berth up --detach
//	berth sync examples/hello --wait
//	berth installs create acme --app hello --customer acme --stack local --watch --auto-approve
//	berth down
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "collect":
		return collect(ctx, args[1], os.Stdout)
	case len(args) == 1 && args[0] == "pick":
		spans, err := read(os.Stdin)
		if err != nil {
			return err
		}
		picked, err := pick(spans)
		if err != nil {
			return err
		}
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", " ")
		return encoder.Encode(picked)
	case len(args) == 1 && args[0] == "draw":
		var p picture
		if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
			return fmt.Errorf("read picture: %w", err)
		}
		_, err := io.WriteString(os.Stdout, draw(p))
		return err
	}
	return errors.New("usage: trace collect ADDRESS | pick | draw")
}
