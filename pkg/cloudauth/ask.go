// Package cloudauth asks clouds for tokens over plain HTTP: what the builder (keys
// of private registries) and the runner (clusters that components make) both need.
//
// It owns how such a question is asked and how little of an answer is repeated. Who
// asks, what for, and how long a token is kept are its callers'.
package cloudauth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// maxAnswer bounds what a cloud may answer, in bytes: a token and some words, or a
// description of a cluster.
const maxAnswer = 1 << 20

// word is a code of a protocol, which never holds what was sent.
var word = regexp.MustCompile(`^[A-Za-z_.]{1,64}$`)

// AnswerError is the status of a server, with a word of its own about the reason
// that its protocol defines, or "". Free text may repeat what it was sent, and is
// dropped.
type AnswerError struct {
	Status int
	Code   string
}

// Error is the code, else what the status means.
func (e *AnswerError) Error() string { return cmp.Or(e.Code, http.StatusText(e.Status)) }

// Transient tells whether the same question may be answered later.
func (e *AnswerError) Transient() bool {
	return e.Status >= http.StatusInternalServerError || e.Status == http.StatusTooManyRequests
}

// Client is a copy of client that follows no redirect: what is sent is secret, and
// these protocols redirect nobody.
func Client(client http.Client) *http.Client {
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// AskJSON does a request and reads its answer.
//
// Errors: an *AnswerError for any status but 200.
func AskJSON(client *http.Client, req *http.Request, answer any) error {
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return &AnswerError{Status: res.StatusCode, Code: CodeOf(raw)}
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return errors.New("its answer is not JSON")
	}
	return nil
}

// Form is the request that posts a form.
func Form(ctx context.Context, address string, form url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req, err
}

// CodeOf is the code of an error: by OAuth 2, as a word, or by Google and Azure, as
// an object with one; "" in an answer without.
func CodeOf(answer []byte) string {
	var problem struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(answer, &problem) != nil {
		return ""
	}
	var code string
	var object struct {
		Status string `json:"status"` // Google
		Code   any    `json:"code"`   // Azure; Google has a number here
	}
	if json.Unmarshal(problem.Error, &code) != nil && json.Unmarshal(problem.Error, &object) == nil {
		text, _ := object.Code.(string)
		code = cmp.Or(object.Status, text)
	}
	if !word.MatchString(code) {
		return ""
	}
	return code
}

// Expiry reads when a JSON web token ends, without checking who signed it; zero
// for any other token.
func Expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}
