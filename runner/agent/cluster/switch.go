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

func (c configMap) position() Switch { return Switch{Mode: c.Data["mode"], Reason: c.Data["reason"]} }

// FollowSwitch calls set with what the ConfigMap says, now and whenever it
// changes, until ctx ends. While the API server is away the last word counts.
func (p *Pod) FollowSwitch(ctx context.Context, log *slog.Logger, set func(Switch) error) error {
	for told := false; ; {
		began := time.Now()
		err := p.followOnce(ctx, set)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && time.Since(began) > watchAgain:
			told = false
			continue
		case err != nil && !told:
			log.WarnContext(ctx, "switch of the cluster cannot be followed, trying again", "err", err)
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
func (p *Pod) followOnce(ctx context.Context, set func(Switch) error) error {
	maps := "/api/v1/namespaces/" + url.PathEscape(p.Namespace) + "/configmaps"
	var now configMap
	err := p.Get(ctx, maps+"/"+SwitchName, &now)
	if IsStatus(err, http.StatusNotFound) {
		err = nil // deleted: it says nothing
	}
	if err != nil {
		return err
	}
	if err := set(now.position()); err != nil {
		return err
	}
	query := url.Values{
		"watch": {"true"}, "fieldSelector": {"metadata.name=" + SwitchName},
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
			err = set(event.Object.position())
		case "DELETED":
			err = set(Switch{})
		default: // an error in the stream, such as a version that is too old
			return nil
		}
		if err != nil {
			return err
		}
	}
}
