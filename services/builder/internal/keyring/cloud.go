package keyring

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/berth-dev/berth/pkg/reach"
)

// clouds make keys.
type clouds struct {
	client    *http.Client
	authority string
	identity  string
	now       func() time.Time
}

func newClouds(o Options) clouds {
	c := clouds{client: o.Client, now: o.Now}
	if c.client == nil {
		c.client = &http.Client{Timeout: cloudTimeout}
	}
	// What is sent is secret, and these protocols redirect nobody.
	client := *c.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.client = &client
	if c.now == nil {
		c.now = time.Now
	}
	c.authority = cmp.Or(o.AzureAuthority, azureAuthority)
	c.identity = cmp.Or(o.AzureIdentity, azureIdentity)
	return c
}

// maxAnswer bounds what a cloud may answer, in bytes: a token and some words.
const maxAnswer = 1 << 20

// answerError is the status of a server, with a word of its own about the reason
// that its protocol defines; free text may repeat what it was sent.
type answerError struct {
	status int
	code   string
}

func (e *answerError) Error() string {
	return cmp.Or(e.code, http.StatusText(e.status))
}

// askJSON does a request and reads its answer.
func (c clouds) askJSON(req *http.Request, answer any) error {
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return &answerError{status: res.StatusCode, code: codeOf(raw)}
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return errors.New("its answer is not JSON")
	}
	return nil
}

// codeOf is the code of an error by OAuth 2, "" in an answer without one.
func codeOf(answer []byte) string {
	var problem struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &problem) != nil || !word.MatchString(problem.Error) {
		return ""
	}
	return problem.Error
}

// explain says in words why who was asked gave nothing.
func explain(ctx context.Context, who string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{cause: err}
	answer, answered := errors.AsType[*answerError](err)
	why, lasting := reach.Why(err)
	switch {
	case answered:
		e.Transient = answer.status >= http.StatusInternalServerError || answer.status == http.StatusTooManyRequests
		e.text = who + " refuses builder's identity: " + answer.Error()
	case why != "":
		e.Transient = !lasting
		e.text = who + " cannot be reached: " + why
	default:
		e.text = who + " gave no token: " + err.Error()
	}
	return e
}
