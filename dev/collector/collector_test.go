// Package collector runs OpenTelemetry's collector, made of its own modules, with
// the configuration that deploy/k8s/components/otel-collector gives it. It has a
// module of its own: nothing else needs what a collector is made of.
package collector

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

const overlay = "../../deploy/k8s/components/otel-collector"

// The collector starts with the configuration as it is, but for addresses, says
// that it is alive, and passes a span on.
func TestASpanPasses(t *testing.T) {
	arrived := make(chan string, 1)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("the backend got %s %s: %v", r.Method, r.URL, err)
			return
		}
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalProto(body); err != nil {
			t.Errorf("the backend got no traces: %v", err)
			return
		}
		arrived <- firstSpan(request.Traces())
	}))
	defer backend.Close()
	otlp, health := freeAddress(t), freeAddress(t)
	local := filepath.Join(t.TempDir(), "local.yaml")
	text := fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {otlphttp/backend: {endpoint: %q, compression: none}}
extensions: {health_check: {endpoint: %q}}
`, otlp, backend.URL, health)
	if err := os.WriteFile(local, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := otelcol.NewCommand(settings())
	command.SetArgs([]string{"--config=" + filepath.Join(overlay, "config.yaml"), "--config=" + local})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()

	until(t, ended, func() bool { return get("http://"+health+"/") == http.StatusOK })
	span := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8aa5a2d2c872e8321cf37308d69df2","spanId":"051581bf3cb55c13","name":"workflow.advance","kind":1,"startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}]}`
	resp, err := http.Post("http://"+otlp+"/v1/traces", "application/json", strings.NewReader(span))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the collector answered %s", resp.Status)
	}
	select {
	case name := <-arrived:
		if name != "workflow.advance" {
			t.Errorf("the span %q arrived", name)
		}
	case err := <-ended:
		t.Fatalf("the collector ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("no span arrived")
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the collector ended with %v", err)
	}
}

// A typing mistake in the configuration would be told: the test above can fail.
func TestAMistakeIsRefused(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(overlay, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(text), "limit_mib", "limit_mb", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := otelcol.NewCommand(settings())
	command.SetArgs([]string{"validate", "--config=" + wrong})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "limit_mb") {
		t.Errorf("limit_mb gives %v", err)
	}
}

// The image of the overlay is the version that was run here.
func TestVersion(t *testing.T) {
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`go\.opentelemetry\.io/collector/otelcol v(\S+)`).FindSubmatch(module)
	if version == nil {
		t.Fatal("go.mod names no collector")
	}
	text, err := os.ReadFile(filepath.Join(overlay, "collector.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "otel/opentelemetry-collector:" + string(version[1]); !strings.Contains(string(text), want) {
		t.Errorf("collector.yaml does not take %s", want)
	}
}

// settings are a collector of the parts that the configuration names.
func settings() otelcol.CollectorSettings {
	return otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol", Description: "collector of the overlay", Version: "test"},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()}, DefaultScheme: "file"},
		},
		Factories: func() (f otelcol.Factories, err error) {
			if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
				return f, err
			}
			if f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](batchprocessor.NewFactory(), memorylimiterprocessor.NewFactory()); err != nil {
				return f, err
			}
			if f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory()); err != nil {
				return f, err
			}
			f.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](healthcheckextension.NewFactory())
			return f, err
		},
	}
}

func firstSpan(traces ptrace.Traces) string {
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				return span.Name()
			}
		}
	}
	return ""
}

func until(t *testing.T, ended <-chan error, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ready(); {
		select {
		case err := <-ended:
			t.Fatalf("the collector ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("the collector did not become ready")
		}
	}
}

func get(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
