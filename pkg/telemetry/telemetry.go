// Package telemetry sets up what every Berth process says about itself: logs by
// slog, traces and metrics by OpenTelemetry. A process calls [Setup] once in
// main; everything else uses slog and the otel packages as they are.
//
// Nothing is sent anywhere, and no goroutine runs for it, until the standard
// OTEL_* variables ask for it: OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER
// (otlp, console, prometheus for metrics, none), or an OTEL_EXPORTER_OTLP_…
// endpoint, which means otlp for both. OTEL_SDK_DISABLED=true turns all off.
//
// With prometheus a process that cannot have its port warns, and goes on without
// metrics; the command line never takes one.
//
// Instruments are made by [InstrumentsOf], named as OpenTelemetry names its own:
// "runner.job.duration" with the unit "s", which Prometheus sees as
// runner_job_duration_seconds.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Setup makes the default logger, tracer and meter of the process, for a
// service with this name ("berth-ctl-api"). shutdown sends what is still
// buffered; call it with a deadline before the process ends. Trace context is
// passed on (W3C) also when nothing is exported, so that a process without an
// exporter does not cut a trace in two.
func Setup(ctx context.Context, service string) (shutdown func(context.Context) error, err error) {
	if err := setupLog(os.Stderr, service); err != nil {
		return nil, err
	}
	otel.SetTextMapPropagator(propagator)

	signals := configured(os.Getenv)
	if service == commandLine && prometheus(os.Getenv) {
		signals.metrics = false
	}
	if !signals.traces && !signals.metrics {
		return func(context.Context) error { return nil }, nil
	}
	res, err := describe(ctx, service)
	if err != nil {
		return nil, err
	}
	var stops []func(context.Context) error
	stopAll := func(ctx context.Context) error {
		var errs []error
		for _, stop := range stops {
			errs = append(errs, stop(ctx))
		}
		return errors.Join(errs...)
	}
	if signals.traces {
		exporter, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("trace exporter: %w", err)
		}
		tracers := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(res))
		otel.SetTracerProvider(tracers)
		stops = append(stops, tracers.Shutdown)
	}
	if signals.metrics {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil && prometheus(os.Getenv) {
			// Most likely another process on this machine has the port. Nothing
			// stops working for lack of somebody to scrape.
			slog.WarnContext(ctx, "metrics are not served: give this process a free OTEL_EXPORTER_PROMETHEUS_PORT", "err", err)
			return stopAll, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("metric exporter: %w", err), stopAll(ctx))
		}
		meters := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(res), metric.WithView(bounded()))
		otel.SetMeterProvider(meters)
		stops = append(stops, meters.Shutdown)
	}
	return stopAll, nil
}

// commandLine is the service name of the command line. It ends before anybody
// scrapes it, and would take the port from a service.
const commandLine = "berth"

// prometheus reports whether metrics are scraped, at a port that each process
// must have to itself.
func prometheus(getenv func(string) string) bool {
	return strings.TrimSpace(getenv("OTEL_METRICS_EXPORTER")) == "prometheus"
}

// signals says what is to be exported.
type signals struct{ traces, metrics bool }

// configured reads the standard variables. autoexport alone would take an
// absent OTEL_TRACES_EXPORTER for "otlp to localhost".
func configured(getenv func(string) string) signals {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return signals{}
	}
	wanted := func(signal string) bool {
		switch strings.TrimSpace(getenv("OTEL_" + signal + "_EXPORTER")) {
		case "none":
			return false
		case "":
			return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
		}
		return true
	}
	return signals{traces: wanted("TRACES"), metrics: wanted("METRICS")}
}

// describe names the process. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// win over what we say.
func describe(ctx context.Context, service string) (*resource.Resource, error) {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithProcessPID(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this process for telemetry: %w", err)
	}
	return res, nil
}

var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
