package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Wait returns when something changes among the objects of a list after the
// given version of it, or when limit is over; the caller then reads the list
// again.
func (c *Client) Wait(ctx context.Context, list string, query url.Values, version string, limit time.Duration) error {
	asked := url.Values{"watch": {"true"}, "resourceVersion": {version}, "timeoutSeconds": {strconv.Itoa(max(1, int(limit/time.Second)))}}
	for name, values := range query {
		asked[name] = values
	}
	ctx, cancel := context.WithTimeout(ctx, limit+callTimeout)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, list+"?"+asked.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var event json.RawMessage
	_ = json.NewDecoder(resp.Body).Decode(&event) // however it ends: the list is read again
	return nil
}
