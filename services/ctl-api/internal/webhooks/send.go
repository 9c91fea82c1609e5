package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/pkg/redact"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/pkg/webhook"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
)

const (
	// sendTimeout is for one attempt, from the look-up of the name to the end of
	// the answer: a receiver puts the event aside and answers.
	sendTimeout = 10 * time.Second
	// maxResponse is what is read of an answer, and kept.
	maxResponse = 1024
	// secretMargin is read besides and cut off after redaction, so that no part of a
	// secret is left at the end.
	secretMargin = 256
	// maxHeader bounds the header of an answer.
	maxHeader = 16 << 10
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Sender sends deliveries. It is safe for concurrent use.
type Sender struct {
	client  *http.Client
	timeout time.Duration
	now     func() time.Time
}

// NewSender makes a sender that connects through the guard. It uses no proxy: a
// proxy would resolve names where the guard does not see it.
func NewSender(g *Guard) *Sender { return newSender(g.Dial, nil, sendTimeout) }

func newSender(dial dialFunc, trust *tls.Config, timeout time.Duration) *Sender {
	return &Sender{
		client: &http.Client{
			Transport: &http.Transport{
				DialContext: dial, TLSClientConfig: trust, TLSHandshakeTimeout: dialTimeout, MaxResponseHeaderBytes: maxHeader,
				DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: parallel, IdleConnTimeout: time.Minute,
			},
			// Where an answer points to, nobody has decided to send anything.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout: timeout, now: time.Now,
	}
}

// Outcome is what became of an attempt.
type Outcome struct {
	OK       bool
	Status   int // 0: there was no answer
	Error    string
	Response string // the start of the answer, redacted
	Took     time.Duration
}

// Send makes one attempt. It does not fail: what goes wrong is the outcome.
func (s *Sender) Send(ctx context.Context, to string, m Message, secrets []string) (out Outcome) {
	began := s.now()
	defer func() { out.Took = s.now().Sub(began) }()
	body, err := m.encode()
	if err != nil {
		return Outcome{Error: "the event could not be encoded"}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return Outcome{Error: "the address is not a URL"}
	}
	req.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	req.Header.Set("User-Agent", "berth/"+version.Get().Version)
	if err := webhook.Sign(req.Header, m.Event.ID, began, body, secrets...); err != nil {
		return Outcome{Error: err.Error()}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return Outcome{Error: clean([]byte(s.reason(err)), secrets)}
	}
	defer resp.Body.Close()
	out = Outcome{OK: resp.StatusCode >= 200 && resp.StatusCode < 300, Status: resp.StatusCode}
	start, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+secretMargin))
	out.Response = clean(start, secrets)
	switch {
	case out.OK:
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		out.Error = fmt.Sprintf("the receiver answered %d; redirects are not followed: give the webhook the final address", resp.StatusCode)
	case err != nil:
		out.Error = clean([]byte(s.reason(err)), secrets)
	default:
		out.Error = fmt.Sprintf("the receiver answered %d", resp.StatusCode)
	}
	return out
}

// reason says in words why there was no answer, without the address, which may be
// a secret of the receiver's, and without what is behind it.
func (s *Sender) reason(err error) string {
	var tlsErr *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errBlocked):
		return errBlocked.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no complete answer within %s", s.timeout)
	case errors.Is(err, context.Canceled):
		return "Berth was stopped during the attempt"
	case errors.As(err, &tlsErr):
		return "the certificate of the receiver is not valid: " + tlsErr.Err.Error()
	}
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return "no answer: " + text
}

// clean makes text of what a receiver sent, at most maxResponse bytes, without secrets and
// without what a terminal would obey.
func clean(raw []byte, secrets []string) string {
	set := redact.New()
	for _, secret := range secrets {
		set.Add([]byte(secret), "")
	}
	text := visible.Text(strings.ToValidUTF8(set.String(string(raw)), "\uFFFD"))
	if len(text) > maxResponse {
		text = strings.ToValidUTF8(text[:maxResponse], "")
	}
	return text
}

// Message is an event on its way to a receiver.
type Message struct {
	OrgID string
	Event stream.Event
}

// cloudEvent is CloudEvents 1.0 in its structured JSON form.
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Sequence        string    `json:"sequence,omitempty"` // the extension of that name
	Data            data      `json:"data"`
}

type data struct {
	Seq        int64           `json:"seq,omitempty"`
	Kind       event.Kind      `json:"kind"`
	CustomerID string          `json:"customer_id,omitempty"`
	AppID      string          `json:"app_id,omitempty"`
	InstallID  string          `json:"install_id,omitempty"`
	Body       json.RawMessage `json:"body"`
}

func (m Message) encode() ([]byte, error) {
	e := m.Event
	ce := cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: "/orgs/" + m.OrgID, Type: "dev.berth." + string(e.Kind), Time: e.At.UTC(), DataContentType: "application/json",
		Data: data{Seq: e.Seq, Kind: e.Kind, CustomerID: e.CustomerID, AppID: e.AppID, InstallID: e.InstallID, Body: e.Body},
	}
	switch {
	case e.InstallID != "":
		ce.Subject = "installs/" + e.InstallID
	case e.AppID != "":
		ce.Subject = "apps/" + e.AppID
	}
	if e.Seq > 0 {
		ce.Sequence = strconv.FormatInt(e.Seq, 10)
	}
	if len(ce.Data.Body) == 0 {
		ce.Data.Body = json.RawMessage("{}")
	}
	return json.Marshal(ce)
}
