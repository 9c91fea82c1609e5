package berth

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/version"
)

const (
	// quietly is how long a request is repeated without a word.
	quietly = 2 * time.Second

	maxProblemBytes = 1 << 20
	maxRedirects    = 5

	tokenShown = "(token)"
)

// Sender sends requests of generated clients, with credentials and patience. It
// serves the client of any service of Berth. It is safe for concurrent use.
type Sender struct {
	http   *http.Client
	opts   Options
	origin string
	// reached is set once the service answered: from then on it is worth
	// waiting for.
	reached atomic.Bool
}

// NewSender makes a sender for one address. It calls nobody.
func NewSender(opts Options) (*Sender, error) {
	u, err := checked(opts.URL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(opts.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token contains invalid characters: it is one word that begins with brt_")
	}
	if opts.Patience == 0 {
		opts.Patience = DefaultPatience
	}
	if opts.MaxAnswer == 0 {
		opts.MaxAnswer = DefaultMaxAnswer
	}
	if opts.Waiting == nil {
		opts.Waiting = func(string) {}
	}
	if opts.Transport == nil {
		opts.Transport = newTransport()
	}
	s := &Sender{opts: opts, origin: origin(u)}
	s.http = &http.Client{Transport: opts.Transport, CheckRedirect: s.redirected}
	return s, nil
}

// redirected lets a redirect pass that stays where it is. Go itself would take
// the token along to other ports and to subdomains, and bodies anywhere.
func (s *Sender) redirected(req *http.Request, via []*http.Request) error {
	if origin(req.URL) != s.origin {
		return &NotBerth{Host: via[0].URL.Host, To: origin(req.URL)}
	}
	if len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// Do implements the interface of generated clients. An answer other than 2xx is
// an error: a *Problem, or a *NotBerth. No answer at all is an *Unreachable, or
// the cause of the request's context. An answer in JSON has been read whole.
func (s *Sender) Do(req *http.Request) (*http.Response, error) {
	if origin(req.URL) != s.origin {
		return nil, fmt.Errorf("this client is for %s and sends nothing to %s", s.origin, origin(req.URL))
	}
	s.dress(req)
	var began time.Time // when the first try had failed: an answer may be waited for long
	told := false
	for next := firstPause; ; next = min(2*next, maxPause) {
		resp, err := s.once(req)
		if began.IsZero() {
			began = time.Now()
		}
		try := attempt{
			rewindable:  req.Body == nil || req.Body == http.NoBody || req.GetBody != nil,
			conditional: req.Header.Get("If-Match") != "",
			pause:       pause.Jittered(next),
			left:        s.opts.Patience - time.Since(began),
		}
		if resp != nil {
			s.reached.Store(true)
			try.status, try.asked = resp.StatusCode, askedFor(resp.Header.Get("Retry-After"), time.Now())
		} else {
			try.err = err
		}
		wait, again := try.again()
		if !again || req.Context().Err() != nil || (s.opts.Impatient && !s.reached.Load()) {
			return s.judge(req, resp, err)
		}
		if !told && time.Since(began)+wait > quietly {
			told = true
			s.opts.Waiting(s.why(resp, err))
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		if err := pause.For(req.Context(), wait); err != nil {
			return nil, err
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// once sends the request and reads the answer as far as it is finite, so that
// one that breaks off counts as none.
func (s *Sender) once(req *http.Request) (*http.Response, error) {
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return resp, nil
	}
	limit := s.opts.MaxAnswer
	if resp.StatusCode/100 != 2 {
		limit = min(limit, maxProblemBytes)
	}
	body := &bounded{ReadCloser: resp.Body, left: limit, limit: limit, path: req.URL.Path}
	resp.Body = body
	if !strings.HasSuffix(kind, "json") {
		return resp, nil
	}
	data, err := io.ReadAll(body)
	_ = body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// dress gives the request all that it needs to be answered.
func (s *Sender) dress(req *http.Request) {
	if s.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.opts.Token)
	}
	if s.opts.Org != "" {
		req.Header.Set("Berth-Org", s.opts.Org)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "berth-go/"+version.Get().Version)
	}
	if req.Method == http.MethodPost && req.Header.Get("Idempotency-Key") == "" {
		req.Header.Set("Idempotency-Key", rand.Text())
	}
}

// judge turns the last try into what the caller gets.
func (s *Sender) judge(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	var notBerth *NotBerth
	var tooLarge *TooLarge
	switch {
	case err == nil:
	case req.Context().Err() != nil:
		return nil, context.Cause(req.Context())
	case errors.As(err, &notBerth):
		return nil, notBerth
	case errors.As(err, &tooLarge):
		return nil, tooLarge
	default:
		return nil, &Unreachable{URL: s.origin, Err: s.withoutToken(err)}
	}
	if resp.StatusCode/100 == 2 {
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if resp.StatusCode != http.StatusNoContent && kind == "text/html" {
			_ = resp.Body.Close()
			return nil, &NotBerth{Host: req.URL.Host}
		}
		return resp, nil
	}
	if p, ok := s.problem(resp); ok {
		return nil, p
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil, &NotBerth{Host: req.URL.Host}
	}
	return nil, &Problem{
		Status: resp.StatusCode, Title: http.StatusText(resp.StatusCode),
		Detail: fmt.Sprintf("%s %s answered %s", req.Method, req.URL.Path, resp.Status),
	}
}

// problem reads the body of an answer, and closes it. A service that repeats the
// token gets it out of no error.
func (s *Sender) problem(resp *http.Response) (*Problem, bool) {
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, false
	}
	if s.opts.Token != "" {
		data = bytes.ReplaceAll(data, []byte(s.opts.Token), []byte(tokenShown))
	}
	return read(data)
}

// withoutToken is an error, without its cause if that shows the token: Go's
// quotes what it does not understand of an answer.
func (s *Sender) withoutToken(err error) error {
	if text := err.Error(); s.opts.Token != "" && strings.Contains(text, s.opts.Token) {
		return errors.New(strings.ReplaceAll(text, s.opts.Token, tokenShown))
	}
	return err
}

// why says in a few words what a request that is repeated met.
func (s *Sender) why(resp *http.Response, err error) string {
	if err != nil {
		return innermost(s.withoutToken(err)).Error()
	}
	if p, ok := s.problem(resp); ok && p.Detail != "" {
		return p.Detail
	}
	return "it answers " + resp.Status
}

// bounded is a body that ends in an error where it gets too large.
type bounded struct {
	io.ReadCloser
	left, limit int64
	path        string
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		return 0, &TooLarge{Path: b.path, Limit: b.limit}
	}
	b.left -= int64(n)
	return n, err
}
