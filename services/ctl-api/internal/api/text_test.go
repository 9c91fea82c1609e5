package api_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
)

// NUL is no text of the database: every route refuses it, with its place, in the
// path, the query and the body.
func TestAttackNULOnEveryRoute(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	param := regexp.MustCompile(`\{[^}]+\}`)
	ask := func(method, path, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+admin.token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%s %s %s: answered %d: %s", method, path, body, resp.StatusCode, text)
		}
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			if strings.Contains(path, "{") {
				ask(method, param.ReplaceAllString(path, "a%00b"), "")
			}
			plain := param.ReplaceAllString(path, "x")
			ask(method, plain+"?after=%00", "")
			if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
				continue
			}
			schema := op.RequestBody.Value.Content["application/json"].Schema.Value
			for name := range schema.Properties {
				ask(method, plain, `{"`+name+`": "a\u0000b"}`)
			}
			ask(method, plain, `{"a\u0000b": {"c": ["\u0000"]}}`)
		}
	}
	// Where such a body fits the contract otherwise, the place is said.
	for path, body := range map[string]string{
		"/apps":      `{"name": "a\u0000"}`,
		"/tokens":    `{"name": "a\u0000"}`,
		"/customers": `{"name": "a\u0000"}`,
	} {
		ask(http.MethodPost, path, body)
	}
}
