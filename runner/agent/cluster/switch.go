package cluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// watchTime is how long one watch is held open; the API server ends it.
	watchTime = 5 * time.Minute
	// watchAgain is between watches that fail.
	watchAgain = 2 * time.Second
)

// Switch is the customer's switch as the ConfigMap berth-runner-switch has it;
// Mode is "" when it does not say anything.
type Switch struct{ Mode, Reason string }

type configMap struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

// FollowSwitch calls set with what the ConfigMap of the switch says, see Follow.
func (p *Pod) FollowSwitch(ctx context.Context, log *slog.Logger, set func(Switch) error) error {
	return p.Follow(ctx, log, SwitchName, func(data map[string]string) error {
		return set(Switch{Mode: data["mode"], Reason: data["reason"]})
	})
}

// Follow calls set with the data of a ConfigMap of the runner's namespace, now and
// whenever it changes, until ctx ends: nil when there is none. While the API server is
// away, or does not show it, the last word counts.
func (p *Pod) Follow(ctx context.Context, log *slog.Logger, name string, set func(data map[string]string) error) error {
	for told := false; ; {
		began := time.Now()
		err := p.followOnce(ctx, name, set)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && time.Since(began) > watchAgain:
			told = false
			continue
		case err != nil && !told:
			log.WarnContext(ctx, "ConfigMap cannot be followed, trying again", "name", name, "err", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(watchAgain):
		}
	}
}

// followOnce reads the ConfigMap, then each change of it until the API server
// ends the watch.
func (p *Pod) followOnce(ctx context.Context, name string, set func(map[string]string) error) error {
	maps := "/api/v1/namespaces/" + url.PathEscape(p.Namespace) + "/configmaps"
	var now configMap
	err := p.Get(ctx, maps+"/"+url.PathEscape(name), &now)
	if IsStatus(err, http.StatusNotFound) {
		err = nil // deleted: it says nothing
	}
	if err != nil {
		return err
	}
	if err := set(now.Data); err != nil {
		return err
	}
	query := url.Values{
		"watch": {"true"}, "fieldSelector": {"metadata.name=" + name},
		"timeoutSeconds": {strconv.Itoa(int(watchTime / time.Second))}, "resourceVersion": {now.Metadata.ResourceVersion},
	}
	ctx, cancel := context.WithTimeout(ctx, watchTime+callTimeout)
	defer cancel()
	resp, err := p.send(ctx, http.MethodGet, maps+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	events := json.NewDecoder(resp.Body)
	for {
		var event struct {
			Type   string    `json:"type"`
			Object configMap `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			return nil // the watch is over, in whatever way: read it again
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			err = set(event.Object.Data)
		case "DELETED":
			err = set(nil)
		default: // an error in the stream, such as a version that is too old
			return nil
		}
		if err != nil {
			return err
		}
	}
}
