package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// List is a list of objects as it was read.
type List struct {
	Path    string
	Query   url.Values // which objects of it
	Version string     // its resourceVersion
}

// Wait returns when something has changed in a list since it was read, or when
// limit is over; the caller then reads the list again.
func (c *Client) Wait(ctx context.Context, l List, limit time.Duration) error {
	asked := url.Values{"watch": {"true"}, "resourceVersion": {l.Version}, "timeoutSeconds": {strconv.Itoa(max(1, int(limit/time.Second)))}}
	for name, values := range l.Query {
		asked[name] = values
	}
	ctx, cancel := context.WithTimeout(ctx, limit+callTimeout)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, l.Path+"?"+asked.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var event json.RawMessage
	_ = json.NewDecoder(resp.Body).Decode(&event) // however it ends: the list is read again
	return nil
}
