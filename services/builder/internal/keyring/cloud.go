package keyring

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/berth-dev/berth/pkg/cloudauth"
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
	c.client = cloudauth.Client(*c.client)
	if c.now == nil {
		c.now = time.Now
	}
	c.authority, c.identity = o.AzureAuthority, o.AzureIdentity
	return c
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
	answer, answered := errors.AsType[*cloudauth.AnswerError](err)
	why, lasting := reach.Why(err)
	switch {
	case answered:
		e.Transient = answer.Transient()
		e.text = who + " refuses builder's identity: " + answer.Error()
	case why != "":
		e.Transient = !lasting
		e.text = who + " cannot be reached: " + why
	default:
		e.text = who + " gave no token: " + err.Error()
	}
	return e
}
