package auth

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/berth-dev/berth/services/internal/fault"
)

// Authenticator finds who stands behind a credential. All credentials that are
// not good get ErrBadToken, whatever is wrong with them.
type Authenticator interface {
	Authenticate(ctx context.Context, bearer string) (Principal, error)
}

// Credential finds the credential of a request, as Bearer does.
type Credential func(r *http.Request) (string, error)

// ErrBadToken answers every credential that is not good.
var ErrBadToken = fault.With(fault.Newf(fault.ErrUnauthenticated, "the token is missing, unknown, expired or revoked"),
	fault.Remedy("send it as: Authorization: Bearer <token>"))

// ErrSessionEnded answers every cookie that is not good.
var ErrSessionEnded = fault.With(fault.Newf(fault.ErrUnauthenticated, "this browser is not logged in any more"),
	fault.Code("session_ended"), fault.Remedy("log in again"))

// Forbidden answers somebody who is known and may not.
func Forbidden(permission Permission) error {
	return fault.With(fault.Newf(fault.ErrForbidden, "your role does not include the permission %q here", string(permission)),
		fault.Remedy("ask an admin of your org for a role that does"))
}

// Bearer is the token of a request, from its only Authorization header.
func Bearer(r *http.Request) (string, error) {
	if len(r.Header.Values("Authorization")) != 1 {
		return "", ErrBadToken
	}
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", ErrBadToken
	}
	return token, nil
}

var secretPrefixes = []string{TokenPrefix, SessionPrefix, EnrolmentPrefix, PhoneHomePrefix, RegistryPrefix, LogPrefix, BrowserPrefix, LinkPrefix}

// refuseTokenInURL refuses a request with a secret in its query, even if it
// has a good header as well: URLs end in logs, histories and proxies.
func refuseTokenInURL(query url.Values) error {
	for _, values := range query {
		for _, value := range values {
			for _, prefix := range secretPrefixes {
				if WellFormed(prefix, value) {
					return fault.With(fault.Newf(fault.ErrInvalid, "there is a secret in the URL, where others can read it"),
						fault.Code("token_in_url"), fault.Remedy("revoke it, and send a new one in the Authorization header"))
				}
			}
		}
	}
	return nil
}
