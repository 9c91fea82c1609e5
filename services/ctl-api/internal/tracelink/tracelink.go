// Package tracelink says where people see the trace of a workflow. It does no I/O.
package tracelink

import (
	"context"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Place stands in an address for the id of a trace, 32 hexadecimal digits.
const Place = "{trace_id}"

// Link is the address of a trace in the operator's viewer, with Place in it; empty for none.
type Link string

// Check reports an address that browsers are not sent to.
func (l Link) Check() error {
	address := strings.ReplaceAll(string(l), Place, strings.Repeat("0", 32))
	u, err := url.Parse(address)
	switch {
	case l == "":
		return nil
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fault.Newf(fault.ErrInvalid, "is not an address such as https://traces.example.com/trace/%s", Place)
	case u.User != nil:
		return fault.Newf(fault.ErrInvalid, "has credentials in it, and is shown to people: take them out")
	case address == string(l):
		return fault.Newf(fault.ErrInvalid, "has no %s, where the id of the trace is to stand", Place)
	}
	return nil
}

// Of is the trace that package telemetry wrote down: its id, "" for none, and where it is
// seen, "" without a link and for a trace that was not kept.
func (l Link) Of(carried map[string]string) (id, address string) {
	span := trace.SpanContextFromContext(telemetry.Extract(context.Background(), carried))
	if !span.HasTraceID() {
		return "", ""
	}
	id = span.TraceID().String()
	if l != "" && span.IsSampled() {
		address = strings.ReplaceAll(string(l), Place, id)
	}
	return id, address
}
