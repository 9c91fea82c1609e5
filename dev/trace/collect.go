package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A span is what the picture needs of one, a line of JSON.
type span struct {
	Trace   string `json:"trace"`
	Service string `json:"service"`
	Scope   string `json:"scope"` // the library that made it
	Name    string `json:"name"`
	Start   uint64 `json:"start"` // nanoseconds since 1970
	End     uint64 `json:"end"`
}

const (
	headerTimeout = 5 * time.Second
	endTimeout    = 5 * time.Second
	maxBody       = 64 << 20
)

// collect writes each span that arrives until ctx ends.
func collect(ctx context.Context, address string, to io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	out := json.NewEncoder(to)
	var mu sync.Mutex
	server := &http.Server{ReadHeaderTimeout: headerTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var request collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &request) != nil {
			http.Error(w, "not OTLP", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, s := range spansOf(&request) {
			if err := out.Encode(s); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})}
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func spansOf(request *collector.ExportTraceServiceRequest) (all []span) {
	for _, resource := range request.GetResourceSpans() {
		service := ""
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				all = append(all, span{
					Trace: hex.EncodeToString(s.GetTraceId()), Service: service, Scope: scope.GetScope().GetName(), Name: s.GetName(),
					Start: s.GetStartTimeUnixNano(), End: s.GetEndTimeUnixNano(),
				})
			}
		}
	}
	return all
}

// read reads what collect wrote.
func read(from io.Reader) (all []span, err error) {
	decoder := json.NewDecoder(bufio.NewReader(from))
	for {
		var s span
		switch err := decoder.Decode(&s); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read spans: %w", err)
		}
		all = append(all, s)
	}
}
