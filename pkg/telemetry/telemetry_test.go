package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/pkg/visible"
)

const envChild = "TELEMETRY_TEST_CHILD"

// The providers are global to a process, so processes are what is tested: with
// the variable set, this binary is one that works inside one span.
func TestMain(m *testing.M) {
	if os.Getenv(envChild) == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	before := runtime.NumGoroutine()
	shutdown, err := Setup(ctx, "berth-test")
	if err != nil {
		slog.Error("setup", "err", err)
		os.Exit(1)
	}
	after := runtime.NumGoroutine()
	ctx, span := otel.Tracer("test").Start(FromEnviron(ctx, os.Getenv), "work of the child")
	slog.InfoContext(ctx, "worked", "goroutines_added", after-before, "environ", Environ(ctx))
	span.End()
	if err := shutdown(ctx); err != nil {
		slog.Error("shutdown", "err", err)
		os.Exit(1)
	}
	os.Exit(0)
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// child runs a process with Setup and returns its log lines and what it
// exported to the console.
func child(t *testing.T, env ...string) (logged map[string]any, exported string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{envChild + "=1", "BERTH_LOG_FORMAT=json", "TRACEPARENT=" + parent}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("child: %v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(stderr.Bytes(), &logged); err != nil {
		t.Fatalf("log line %q: %v", stderr.String(), err)
	}
	return logged, stdout.String()
}

func TestOffWithoutVariables(t *testing.T) {
	t.Parallel()
	logged, exported := child(t)
	if logged["goroutines_added"] != 0.0 {
		t.Errorf("goroutines added: got %v, want 0", logged["goroutines_added"])
	}
	if exported != "" {
		t.Errorf("exported %q, want nothing", exported)
	}
	if logged["trace_id"] != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace id in the log: got %v, want the parent's", logged["trace_id"])
	}
	if diff := cmp.Diff([]any{"TRACEPARENT=" + parent}, logged["environ"]); diff != "" {
		t.Errorf("a process without exporter must pass the trace on (-want +got):\n%s", diff)
	}
}

func TestTraceGoesOnInTheChild(t *testing.T) {
	t.Parallel()
	logged, exported := child(t, "OTEL_TRACES_EXPORTER=console", "OTEL_METRICS_EXPORTER=none")
	var span struct {
		Name   string
		Parent struct{ TraceID, SpanID string }
	}
	if err := json.NewDecoder(strings.NewReader(exported)).Decode(&span); err != nil {
		t.Fatalf("exported %q: %v", exported, err)
	}
	if span.Name != "work of the child" || span.Parent.TraceID != "0af7651916cd43dd8448eb211c80319c" || span.Parent.SpanID != "b7ad6b7169203331" {
		t.Errorf("span: got %+v, want the child's below the parent's", span)
	}
	if id, _ := logged["span_id"].(string); id == "" || id == "b7ad6b7169203331" {
		t.Errorf("span id in the log: got %q, want that of the child's own span", id)
	}
}

// Several processes of one machine that are told the same go on without metrics
// where only one can have the port.
func TestAPortThatIsTakenStopsNothing(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{envChild + "=1", "OTEL_METRICS_EXPORTER=prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST=" + host, "OTEL_EXPORTER_PROMETHEUS_PORT=" + port}
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, said)
	}
	for _, want := range []string{"level=WARN", "OTEL_EXPORTER_PROMETHEUS_PORT", "worked"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("it did not say %q:\n%s", want, said)
		}
	}
}

func TestConfigured(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  map[string]string
		want signals
	}{
		{"nothing set", nil, signals{}},
		{"endpoint for both", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, signals{true, true}},
		{"endpoint for one", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318"}, signals{traces: true}},
		{"named exporter", map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, signals{metrics: true}},
		{"none wins over an endpoint", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, signals{metrics: true}},
		{"disabled", map[string]string{"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "TRUE"}, signals{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := configured(func(name string) string { return tt.env[name] })
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestCarry(t *testing.T) {
	t.Parallel()
	if got := Inject(t.Context()); got == nil || len(got) != 0 {
		t.Errorf("outside of a trace: got %v, want an empty map", got)
	}
	ctx := Extract(t.Context(), map[string]string{"traceparent": parent})
	if diff := cmp.Diff(map[string]string{"traceparent": parent}, Inject(ctx)); diff != "" {
		t.Errorf("carried (-want +got):\n%s", diff)
	}
	if span := trace.SpanContextFromContext(Extract(t.Context(), map[string]string{"traceparent": "nonsense"})); span.IsValid() {
		t.Errorf("nonsense gave %v", span)
	}
}

func TestNewHandler(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ format, level, wantErr string }{
		{format: "xml", wantErr: `BERTH_LOG_FORMAT "xml": choose text or json`},
		{level: "loud", wantErr: `BERTH_LOG_LEVEL "loud": choose debug, info, warn or error`},
	} {
		if _, err := newHandler(&bytes.Buffer{}, tt.format, tt.level); err == nil || err.Error() != tt.wantErr {
			t.Errorf("format %q, level %q: got error %v, want %s", tt.format, tt.level, err, tt.wantErr)
		}
	}
	var out bytes.Buffer
	h, err := newHandler(&out, "json", "warn")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(h)
	log.Info("hidden")
	log.With("a", 1).WithGroup("g").Warn("shown", "err", errors.New("x"))
	if got := out.String(); strings.Contains(got, "hidden") || !strings.Contains(got, "shown") {
		t.Errorf("log at level warn: got %q", got)
	}
}

// What others wrote into a line of the log does not steer the terminal that
// shows it, in either format.
func TestLogLinesCannotSteerTheTerminal(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		h, err := newHandler(&out, format, "")
		if err != nil {
			t.Fatal(err)
		}
		slog.New(h).Info("job ended", "reason", "x\x1b[2J\u009b1m\u202e\u200b\U000e0041\xff\rover\nFORGED")
		line := strings.TrimSuffix(out.String(), "\n")
		if strings.Contains(line, "\n") || strings.ContainsFunc(line, visible.Hidden) || !utf8.ValidString(line) {
			t.Errorf("%s: %q", format, line)
		}
	}
}
