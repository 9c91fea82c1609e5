package cloudauth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/cloudauth"
)

func TestCodeOf(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"error": "invalid_client", "error_description": "hunter2"}`:      "invalid_client",
		`{"error": {"code": 403, "status": "PERMISSION_DENIED"}}`:          "PERMISSION_DENIED",
		`{"error": {"code": "AuthorizationFailed", "message": "hunter2"}}`: "AuthorizationFailed",
		`{"error": "the secret was hunter2"}`:                              "",
		`{"error": {"code": "the secret was hunter2"}}`:                    "",
		`{}`:     "",
		`<html>`: "",
	} {
		if got := cloudauth.CodeOf([]byte(answer)); got != want {
			t.Errorf("code of %s is %q, want %q", answer, got, want)
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	}
	for given, want := range map[string]time.Time{
		token(`{"exp": 1700000000}`): time.Unix(1700000000, 0),
		token(`{}`):                  {},
		token(`[]`):                  {},
		"opaque":                     {},
		"a.b.c":                      {},
	} {
		if got := cloudauth.Expiry(given); !got.Equal(want) {
			t.Errorf("expiry of %q is %s, want %s", given, got, want)
		}
	}
}

// A cloud that redirects gets what was sent to it nowhere else, and says nothing that
// ends up in an error.
func TestAttackRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := make(chan struct{}, 1)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere <- struct{}{} }))
	t.Cleanup(other.Close)
	cloud := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(cloud.Close)
	_, err := cloudauth.Azure{Authority: cloud.URL}.Token(context.Background(), cloudauth.Application{Tenant: "t", Client: "c", Secret: "hunter2"}, "https://management.azure.com")
	answer, ok := errors.AsType[*cloudauth.AnswerError](err)
	if !ok || answer.Status != http.StatusTemporaryRedirect || answer.Transient() {
		t.Errorf("error %v", err)
	}
	if len(elsewhere) > 0 {
		t.Error("the secret was sent elsewhere")
	}
}
