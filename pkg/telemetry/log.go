package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/pkg/visible"
)

// setupLog makes the default logger, from BERTH_LOG_FORMAT (text or json; text)
// and BERTH_LOG_LEVEL (debug, info, warn, error; info).
func setupLog(w io.Writer, service string) error {
	handler, err := newHandler(w, os.Getenv("BERTH_LOG_FORMAT"), os.Getenv("BERTH_LOG_LEVEL"))
	if err != nil {
		return err
	}
	slog.SetDefault(slog.New(handler).With("service", service))
	return nil
}

func newHandler(w io.Writer, format, level string) (slog.Handler, error) {
	opts := &slog.HandlerOptions{}
	if level != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("BERTH_LOG_LEVEL %q: choose debug, info, warn or error", level)
		}
		opts.Level = l
	}
	switch strings.ToLower(format) {
	case "", "text":
		return traced{slog.NewTextHandler(w, opts)}, nil
	case "json":
		return traced{slog.NewJSONHandler(escaped{w}, opts)}, nil
	}
	return nil, fmt.Errorf("BERTH_LOG_FORMAT %q: choose text or json", format)
}

// escaped escapes in lines of JSON what would steer a terminal that shows them;
// lines of text have it in quotes already.
type escaped struct{ io.Writer }

// Write implements io.Writer for whole lines.
func (e escaped) Write(line []byte) (int, error) {
	if _, err := e.Writer.Write(visible.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// traced adds the ids of the present span to every record, so that a log line
// leads to its trace.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }
func (h traced) WithGroup(name string) slog.Handler       { return traced{h.Handler.WithGroup(name)} }
