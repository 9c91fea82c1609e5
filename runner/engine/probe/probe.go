// Package probe looks once whether something answers. The checks that the probes of components
// are made into run it as a program of its own: berth-engine probe http.
package probe

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/certificate"
)

// Exit codes.
const (
	exitGood  = 0
	exitBad   = 1
	exitUsage = 2
)

// maxBody bounds what is read of an answer: only its status counts, and a connection that is
// read to its end can be closed well.
const maxBody = 64 << 10

// Run looks once, at what the environment says: PROBE_TARGET (a URL, HOST:PORT or a workload),
// PROBE_TIMEOUT and, of http, PROBE_METHOD and PROBE_STATUS, such as 200-399; of exec, what
// lookExec says. It writes one line that says what it found, without what may be secret in a
// URL: user, password and query.
func Run(ctx context.Context, kind string, env func(string) string, say io.Writer) int {
	timeout, err := time.ParseDuration(env("PROBE_TIMEOUT"))
	if err != nil || timeout <= 0 {
		fmt.Fprintf(say, "PROBE_TIMEOUT is %q, and has to be a time such as 5s\n", env("PROBE_TIMEOUT"))
		return exitUsage
	}
	if kind == "exec" {
		return lookExec(ctx, env, timeout, say)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	switch kind {
	case "http":
		return lookHTTP(ctx, env, say)
	case "tcp":
		return lookTCP(ctx, env("PROBE_TARGET"), say)
	}
	fmt.Fprintf(say, "there are probes of the types http, tcp and exec, not %q\n", kind)
	return exitUsage
}

func lookHTTP(ctx context.Context, env func(string) string, say io.Writer) int {
	low, high, err := statuses(env("PROBE_STATUS"))
	if err != nil {
		fmt.Fprintln(say, err)
		return exitUsage
	}
	target, err := url.Parse(env("PROBE_TARGET"))
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		fmt.Fprintln(say, "the target is no address that begins with http:// or https://")
		return exitUsage
	}
	shown := env("PROBE_METHOD") + " " + target.Scheme + "://" + target.Host + target.EscapedPath()
	req, err := http.NewRequestWithContext(ctx, env("PROBE_METHOD"), target.String(), nil)
	if err != nil {
		fmt.Fprintf(say, "%s: it cannot be asked for\n", shown)
		return exitUsage
	}
	req.Header.Set("User-Agent", "berth-probe")
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // its status counts
	}
	resp, err := client.Do(req)
	if err != nil {
		fmt.Fprintf(say, "%s: %v\n", shown, why(ctx, err))
		return exitBad
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, maxBody)
	tellCertificate(env("BERTH_ACTIONS_OUTPUT_FILEPATH"), target, resp.TLS)
	if resp.StatusCode < low || resp.StatusCode > high {
		fmt.Fprintf(say, "%s: %s, want %s\n", shown, resp.Status, env("PROBE_STATUS"))
		return exitBad
	}
	fmt.Fprintf(say, "%s: %s\n", shown, resp.Status)
	return exitGood
}

// tellCertificate writes the certificate with which a server answered to the file for outputs,
// or that there was none. It is no part of the verdict: when the file cannot be written, the
// certificate is not told.
func tellCertificate(file string, target *url.URL, state *tls.ConnectionState) {
	if file == "" {
		return
	}
	seen := []jobspec.Certificate{}
	if state != nil && len(state.PeerCertificates) > 0 {
		seen = append(seen, certificate.Of(target.Scheme+"://"+target.Host, state.PeerCertificates[0]))
	}
	data, err := json.Marshal(map[string]any{jobspec.CertificatesOutput: seen})
	if err == nil {
		_ = os.WriteFile(file, data, 0o600)
	}
}

func lookTCP(ctx context.Context, target string, say io.Writer) int {
	if _, _, err := net.SplitHostPort(target); err != nil {
		fmt.Fprintln(say, "the target is not HOST:PORT")
		return exitUsage
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		fmt.Fprintf(say, "tcp %s: %v\n", target, why(ctx, err))
		return exitBad
	}
	_ = conn.Close()
	fmt.Fprintf(say, "tcp %s: it takes connections\n", target)
	return exitGood
}

// why is an error without the address, which may have secrets in it.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if inURL, ok := err.(*url.Error); ok { //nolint:errorlint // the client returns nothing else
		return inURL.Err
	}
	return err
}

// statuses reads 200 or 200-399.
func statuses(text string) (low, high int, err error) {
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	low, errLow := strconv.Atoi(from)
	high, errHigh := strconv.Atoi(to)
	if errLow != nil || errHigh != nil || low < 100 || high > 599 || low > high {
		return 0, 0, fmt.Errorf("PROBE_STATUS is %q, and has to be a status such as 200, or a range such as 200-399", text)
	}
	return low, high, nil
}
