package table

import (
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Webhook shows webhooks, never their secrets.
func Webhook(now time.Time) output.View[ctlapi.Webhook] {
	return output.View[ctlapi.Webhook]{
		Name: func(w ctlapi.Webhook) string { return w.Name },
		None: "no webhooks yet",
		Columns: []output.Column[ctlapi.Webhook]{
			{Head: "NAME", Shrinks: true, Cell: func(w ctlapi.Webhook) string { return w.Name }},
			{Head: "STATE", Cell: func(w ctlapi.Webhook) string { return string(w.State) }},
			{Head: "URL", Shrinks: true, Cell: func(w ctlapi.Webhook) string { return w.URL }},
			{Head: "FILTER", Shrinks: true, Cell: webhookFilter},
			{Head: "PENDING", Cell: func(w ctlapi.Webhook) string { return strconv.FormatInt(w.Pending, 10) }},
			{Head: "DEAD", Cell: func(w ctlapi.Webhook) string { return strconv.FormatInt(w.Dead, 10) }},
			{Head: "SUCCEEDED", Yields: true, Cell: func(w ctlapi.Webhook) string { return ageOf(now, w.SucceededAt) }},
			{Head: "FAILING", Cell: func(w ctlapi.Webhook) string { return ageOf(now, w.FailingSince) }},
			{Head: "SECRETS", Wide: true, Cell: func(w ctlapi.Webhook) string { return strconv.Itoa(w.Secrets) }},
			{Head: "POSITION", Wide: true, Cell: func(w ctlapi.Webhook) string { return strconv.FormatInt(w.Position, 10) }},
			{Head: "AGE", Wide: true, Cell: func(w ctlapi.Webhook) string { return age(now, w.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(w ctlapi.Webhook) string { return w.ID }},
		},
	}
}

// webhookFilter is what an event has to match, "all" for no filter.
func webhookFilter(w ctlapi.Webhook) string {
	var parts []string
	for _, part := range []struct {
		what   string
		values []string
	}{{"", w.Kinds}, {"apps ", w.Apps}, {"installs ", w.Installs}} {
		if len(part.values) > 0 {
			parts = append(parts, part.what+strings.Join(part.values, ","))
		}
	}
	if len(w.Labels) > 0 {
		parts = append(parts, "labels "+labelText(w.Labels))
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, "; ")
}

// Delivery shows the deliveries of a webhook.
func Delivery(now time.Time) output.View[ctlapi.WebhookDelivery] {
	return output.View[ctlapi.WebhookDelivery]{
		Name: func(d ctlapi.WebhookDelivery) string { return d.ID },
		None: "no deliveries",
		Columns: []output.Column[ctlapi.WebhookDelivery]{
			{Head: "ID", Cell: func(d ctlapi.WebhookDelivery) string { return d.ID }},
			{Head: "SEQ", Cell: func(d ctlapi.WebhookDelivery) string {
				if d.Seq == nil {
					return ""
				}
				return strconv.FormatInt(*d.Seq, 10)
			}},
			{Head: "KIND", Shrinks: true, Cell: func(d ctlapi.WebhookDelivery) string { return d.Kind }},
			{Head: "CAUSE", Yields: true, Cell: func(d ctlapi.WebhookDelivery) string { return string(d.Cause) }},
			{Head: "STATE", Cell: func(d ctlapi.WebhookDelivery) string { return string(d.State) }},
			{Head: "ATTEMPTS", Cell: func(d ctlapi.WebhookDelivery) string { return strconv.Itoa(d.Attempts) }},
			{Head: "STATUS", Cell: func(d ctlapi.WebhookDelivery) string {
				if d.Status == nil {
					return ""
				}
				return strconv.Itoa(*d.Status)
			}},
			{Head: "NEXT IN", Yields: true, Cell: func(d ctlapi.WebhookDelivery) string {
				if d.NextAt == nil {
					return ""
				}
				return age(*d.NextAt, now)
			}},
			{Head: "AGE", Cell: func(d ctlapi.WebhookDelivery) string { return age(now, d.CreatedAt) }},
			{Head: "ERROR", Shrinks: true, Cell: func(d ctlapi.WebhookDelivery) string { return api.Value(d.Error) }},
			{Head: "ANSWER", Wide: true, Cell: func(d ctlapi.WebhookDelivery) string { return api.Value(d.Response) }},
			{Head: "EVENT", Wide: true, Cell: func(d ctlapi.WebhookDelivery) string { return d.EventID }},
		},
	}
}
