package berth

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// DefaultPatience is as long as a service may take to come back after a crash.
	DefaultPatience = 20 * time.Second

	// DefaultMaxAnswer holds the largest plan with room to spare, in bytes.
	DefaultMaxAnswer = 64 << 20

	dialTimeout = 10 * time.Second

	// answerTimeout is longer than any answer is held back (60 s).
	answerTimeout = 2 * time.Minute

	maxHeaderBytes = 1 << 20
)

// Options say where to go and as whom. Printing or logging them shows no token.
type Options struct {
	URL   string // of the control plane, like https://berth.example.com
	Token string `json:"-"`
	Org   string // to work in, an id or a name; "" for the token's own

	// Patience is how long a request is repeated, from its first failure on. Default: DefaultPatience;
	// negative: it is never repeated.
	Patience time.Duration
	// Impatient has the first request fail at once when nobody answers, which
	// is right where a person may have mistyped the address.
	Impatient bool
	// Waiting is called when a request has been repeated for 2 s, once per
	// request, with the reason. Default: nothing is called.
	Waiting func(why string)
	// MaxAnswer is how large an answer may be, in bytes; streams of events have
	// no end and no limit. Default: DefaultMaxAnswer.
	MaxAnswer int64
	// Transport carries the requests. Default: Go's, with time-outs.
	Transport http.RoundTripper
}

// FromEnvironment reads BERTH_URL, BERTH_TOKEN and BERTH_ORG, which the command
// line reads too. Pass os.Getenv.
func FromEnvironment(getenv func(string) string) Options {
	return Options{URL: getenv("BERTH_URL"), Token: getenv("BERTH_TOKEN"), Org: getenv("BERTH_ORG")}
}

// String shows the options without the token.
func (o Options) String() string {
	token := "none"
	if o.Token != "" {
		token = "set"
	}
	return fmt.Sprintf("berth.Options{URL: %q, Token: %s, Org: %q}", shown(o.URL), token, o.Org)
}

// GoString is String, for %#v.
func (o Options) GoString() string { return o.String() }

// LogValue shows the options without the token.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// Client calls the control plane. It is safe for concurrent use.
type Client struct {
	*ctlapi.ClientWithResponses
}

// New makes a client; it calls nobody. Without a URL or a token, or with one that
// cannot be right, it returns an error.
func New(opts Options) (*Client, error) {
	if opts.Token == "" {
		return nil, errors.New("no token is given: set BERTH_TOKEN, or Options.Token")
	}
	sender, err := NewSender(opts)
	if err != nil {
		return nil, err
	}
	return Through(opts.URL, sender)
}

// Through makes a client whose requests go through a sender, or through
// something around one.
func Through(address string, sender ctlapi.HttpRequestDoer) (*Client, error) {
	generated, err := ctlapi.NewClientWithResponses(address, ctlapi.WithHTTPClient(sender))
	if err != nil {
		return nil, err
	}
	return &Client{generated}, nil
}

// checked is the address of a control plane, if it can be one. Errors do not
// repeat it: it may hold a password.
func checked(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil, errors.New("no control plane is given: set BERTH_URL, or Options.URL")
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, errors.New("the URL of the control plane must look like https://berth.example.com")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL of the control plane must have no user, password, query or fragment")
	}
	return u, nil
}

// shown is an address as far as anybody may see it.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(not a URL)"
	}
	return origin(u)
}

// origin is what credentials are for: scheme, host and port.
func origin(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return scheme + "://" + host
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func newTransport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() // keeps the proxy of the environment
	transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	transport.ResponseHeaderTimeout = answerTimeout
	transport.MaxResponseHeaderBytes = maxHeaderBytes
	return transport
}
