package e2e_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spans is an OTLP receiver that remembers which services took part in which
// trace.
type spans struct {
	mu       sync.Mutex
	services map[string]map[string]bool // trace id → service names
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &req) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range req.ResourceSpans {
		name := ""
		for _, kv := range resource.Resource.Attributes {
			if kv.Key == "service.name" {
				name = kv.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				trace := hex.EncodeToString(span.TraceId)
				if s.services[trace] == nil {
					s.services[trace] = map[string]bool{}
				}
				s.services[trace][name] = true
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// TestOneTrace follows one call of the command line through everything that it
// sets in motion: ctl-api, its River worker, runner-api, the agent, the engine.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	got := &spans{services: map[string]map[string]bool{}}
	receiver := httptest.NewServer(got)
	t.Cleanup(receiver.Close)
	s := start(t,
		"OTEL_TRACES_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none",
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL, "OTEL_BSP_SCHEDULE_DELAY=200")
	s.must("sync", filepath.Join("..", "..", "examples", "hello"), "--wait")
	s.must("installs", "create", "acme", "--app", "hello", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	want := []string{"berth", "berth-ctl-api", "berth-engine", "berth-runner", "berth-runner-api"}
	s.eventually(goOnTimeout, "one trace has all parts", func() error {
		got.mu.Lock()
		defer got.mu.Unlock()
		var best []string
		for _, services := range got.services {
			var have []string
			for _, name := range want {
				if services[name] {
					have = append(have, name)
				}
			}
			if len(have) > len(best) {
				best = have
			}
		}
		if !slices.Equal(best, want) {
			return fmt.Errorf("the fullest of %d traces has %v", len(got.services), best)
		}
		return nil
	})
	// The build's trace is one as well: from the sync to the Build Runner. The first
	// builds of an org wait for its Build Runner, whose enrolment goes on with them.
	app := folder(t, filepath.Join("..", "..", "examples", "hello"))
	module := filepath.Join(app, "src", "key", "main.tf")
	text, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(module, append(text, "# Another build.\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("sync", app, "--wait")
	s.eventually(goOnTimeout, "a trace goes from the sync through builder to the engine", func() error {
		got.mu.Lock()
		defer got.mu.Unlock()
		for _, services := range got.services {
			if services["berth"] && services["berth-builder"] && services["berth-engine"] {
				return nil
			}
		}
		return errors.New("there is none")
	})
}
