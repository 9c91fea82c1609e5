package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// Inject returns the trace context of ctx as a small map, to be stored in a row
// (jobs, workflows) or sent along. It is empty, never nil, outside of a trace.
func Inject(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	propagator.Inject(ctx, carrier)
	return carrier
}

// Extract returns ctx inside the trace that Inject wrote down. What is not a
// trace context changes nothing.
func Extract(ctx context.Context, carried map[string]string) context.Context {
	return propagator.Extract(ctx, propagation.MapCarrier(carried))
}

// Environ returns the trace context of ctx as environment variables for a child
// process: TRACEPARENT and, where set, TRACESTATE and BAGGAGE.
func Environ(ctx context.Context) []string {
	env := []string{}
	for _, name := range propagator.Fields() {
		if value := Inject(ctx)[name]; value != "" {
			env = append(env, strings.ToUpper(name)+"="+value)
		}
	}
	return env
}

// FromEnviron returns ctx inside the trace that the parent process passed on,
// given a getenv such as os.Getenv.
func FromEnviron(ctx context.Context, getenv func(string) string) context.Context {
	carrier := map[string]string{}
	for _, name := range propagator.Fields() {
		if value := getenv(strings.ToUpper(name)); value != "" {
			carrier[name] = value
		}
	}
	return Extract(ctx, carrier)
}
