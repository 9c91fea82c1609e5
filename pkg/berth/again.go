package berth

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
)

// An attempt is a request that was sent once, and what came of it.
type attempt struct {
	// rewindable: its body can be sent again.
	rewindable bool
	// conditional: it has an If-Match, which its own success makes untrue. It is
	// repeated only when it certainly had no effect.
	conditional bool

	status int   // of the answer; 0: there was none
	err    error // why there was none

	// asked is the pause that the service asks for, nil when it asks for none.
	asked *time.Duration
	pause time.Duration // the one to make otherwise
	left  time.Duration // of the patience
}

// again tells whether to send the request once more, and after what pause. PUT,
// PATCH and DELETE of this API say what shall be, and POST has a key: sent twice
// they do what they do once.
func (a attempt) again() (time.Duration, bool) {
	if !a.rewindable {
		return 0, false
	}
	switch {
	case a.status == http.StatusTooManyRequests:
		if a.asked == nil {
			return 0, false
		}
	case a.conditional:
		return 0, false
	case a.status == 0:
		if !passes(a.err) {
			return 0, false
		}
	case a.status != http.StatusBadGateway && a.status != http.StatusServiceUnavailable && a.status != http.StatusGatewayTimeout:
		return 0, false
	}
	pause := a.pause
	if a.asked != nil {
		pause = max(pause, *a.asked)
	}
	return pause, pause <= a.left
}

// passes tells whether an error of a connection may be gone at the next try.
func passes(err error) bool {
	var (
		notBerth    *NotBerth
		tooLarge    *TooLarge
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, http.ErrSchemeMismatch):
		return false
	case errors.As(err, &notBerth), errors.As(err, &tooLarge), errors.As(err, &certificate), errors.As(err, &record):
		return false
	}
	return true
}

// askedFor reads a Retry-After: seconds, or a time. What is neither asks for
// nothing.
func askedFor(header string, now time.Time) *time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		pause := time.Duration(seconds) * time.Second
		return &pause
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return nil
	}
	pause := max(0, at.Sub(now))
	return &pause
}
