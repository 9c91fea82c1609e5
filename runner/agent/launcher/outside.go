package launcher

import (
	"os"
	"slices"
)

// wayOut are the variables by which engines find the way out of the customer's
// network, as the agent does.
var wayOut = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

// traces are the variables that say where spans go. Those with headers or keys
// are not among them: vendor code runs in engines.
var traces = []string{
	"OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
	"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
}

// FromOutside are the variables of the agent that its engines get too. Only
// OTLP traces go on in engines: a console exporter would write into the log.
func FromOutside() (env []string) {
	names := wayOut
	if os.Getenv("OTEL_TRACES_EXPORTER") == "otlp" {
		names = slices.Concat(wayOut, traces)
	}
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
