package keyring

import (
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/berth-dev/berth/pkg/cloudauth"
	"github.com/berth-dev/berth/pkg/oci"
)

const (
	// googleUser is the user name that Artifact Registry wants with an access token.
	googleUser = "oauth2accesstoken"

	// googleScope is the least that Artifact Registry reads with.
	googleScope = "https://www.googleapis.com/auth/cloud-platform.read-only"

	// tokenGuess is the life of a token that says nothing about it.
	tokenGuess = 10 * time.Minute
)

// google gets an access token by the key of a service account, or from the machine
// that builder runs on (GKE, Compute Engine).
func (c clouds) google(ctx context.Context, k Key) (oci.Login, time.Time, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, c.client)
	who := "the metadata server of Google Cloud"
	source := google.ComputeTokenSource("", googleScope)
	if k.entry.KeyFile != "" {
		who = "Google Cloud"
		raw, err := readPrivate(k.entry.KeyFile)
		if err != nil {
			return oci.Login{}, time.Time{}, refuse("key_file of %s cannot be read: %s", k.name, err)
		}
		account, err := google.JWTConfigFromJSON(raw, googleScope)
		if err != nil { // it may quote the file
			return oci.Login{}, time.Time{}, refuse("key_file of %s is not the key of a service account", k.name)
		}
		source = account.TokenSource(ctx)
	}
	token, err := source.Token()
	if err != nil {
		return oci.Login{}, time.Time{}, explain(ctx, who, googleError(err))
	}
	until := token.Expiry
	if until.IsZero() {
		until = c.now().Add(tokenGuess)
	}
	return oci.Login{Username: googleUser, Password: token.AccessToken}, until, nil
}

// googleError drops the text of an answer, which may be anything.
func googleError(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		e := &cloudauth.AnswerError{Code: cloudauth.CodeOf(answer.Body)}
		if answer.Response != nil {
			e.Status = answer.Response.StatusCode
		}
		return e
	}
	return withoutText(err)
}
