package metricexport

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"golang.org/x/net/http/httpguts"
	"google.golang.org/protobuf/proto"

	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// sendTimeout is for one batch, to the end of the answer; claimFor is longer.
	sendTimeout = 30 * time.Second
	// maxAnswer is what is read of an answer.
	maxAnswer = 64 << 10
	// maxRejection is what is logged of a collector's word about points that it left out.
	maxRejection = 300
)

// Sender posts to one collector.
type Sender struct {
	endpoint string
	headers  http.Header
	client   *http.Client
}

// NewSender makes one that posts to exactly this address, with the headers in a file.
func NewSender(endpoint, headersFile string) (*Sender, error) {
	headers := http.Header{}
	if headersFile != "" {
		raw, err := os.ReadFile(headersFile)
		if err != nil {
			return nil, fmt.Errorf("read headers of the metrics export: %w", err)
		}
		if headers, err = parseHeaders(string(raw)); err != nil {
			return nil, err
		}
	}
	return &Sender{
		endpoint: endpoint, headers: headers,
		client: &http.Client{
			Timeout: sendTimeout,
			// The headers are for this address alone.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// parseHeaders reads a header per line, as HTTP writes them. No error shows a line: each may be a secret.
func parseHeaders(file string) (http.Header, error) {
	out := http.Header{}
	for n, line := range strings.Split(file, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("headers of the metrics export: line %d is not NAME: VALUE", n+1)
		}
		out.Add(name, value)
	}
	return out, nil
}

// answer is what a collector said, or why nothing was heard.
type answer struct {
	status     int // 0: there was no answer
	retryAfter time.Duration
	rejected   int64  // points that it left out of those it took
	said       string // why, without secrets
	err        error
}

// fate is what becomes of a batch.
type fate int

const (
	taken   fate = iota // go on behind it
	refused             // these points will never be taken
	later               // the same again
)

// fate decides. Only what OTLP means by a bad request counts against the points: a wrong
// token, a wrong address or a collector that is down must lose none.
func (a answer) fate() fate {
	switch {
	case a.err == nil && a.status >= 200 && a.status < 300:
		return taken
	case a.status == http.StatusBadRequest, a.status == http.StatusRequestEntityTooLarge:
		return refused
	default:
		return later
	}
}

// post sends a batch. It does not fail: what goes wrong is the answer.
func (s *Sender) post(ctx context.Context, points []ctldb.PointsToExportRow, now time.Time) answer {
	body, err := encode(points)
	if err != nil { // no collector would take them either
		return answer{status: http.StatusBadRequest, err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, body)
	if err != nil {
		return answer{err: errors.New("the address is not a URL")}
	}
	for name, values := range s.headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "berth/"+version.Get().Version)
	resp, err := s.client.Do(req)
	if err != nil {
		var at *url.Error // shows the address, which may hold a token
		if errors.As(err, &at) {
			err = at.Err
		}
		return answer{err: errors.New(s.clean(err.Error()))}
	}
	defer resp.Body.Close()
	out := answer{status: resp.StatusCode, retryAfter: retryAfter(resp.Header.Get("Retry-After"), now)}
	// Of an answer that breaks off, the status counts.
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	var said collector.ExportMetricsServiceResponse
	if out.fate() == taken && proto.Unmarshal(raw, &said) == nil {
		out.rejected, out.said = said.GetPartialSuccess().GetRejectedDataPoints(), s.clean(said.GetPartialSuccess().GetErrorMessage())
	}
	return out
}

func encode(points []ctldb.PointsToExportRow) (*bytes.Reader, error) {
	batch, err := request(points)
	if err != nil {
		return nil, err
	}
	raw, err := proto.Marshal(batch)
	if err != nil {
		return nil, fmt.Errorf("encode points: %w", err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err = zip.Write(raw)
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, fmt.Errorf("compress points: %w", err)
	}
	return bytes.NewReader(packed.Bytes()), nil
}

// clean takes the values of headers, and each word of them, out of foreign text.
func (s *Sender) clean(text string) string {
	for _, values := range s.headers {
		for _, value := range values {
			for _, secret := range append([]string{value}, strings.Fields(value)...) {
				if secret != "" {
					text = strings.ReplaceAll(text, secret, "[redacted]")
				}
			}
		}
	}
	if len(text) > maxRejection {
		text = text[:maxRejection] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// retryAfter reads seconds or a date; 0 for neither.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
