package eventapi

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/webhooks"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListWebhooks answers the webhooks of the org.
func (h *Handlers) ListWebhooks(ctx context.Context, req apigen.ListWebhooksRequestObject) (apigen.ListWebhooksResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	out := apigen.ListWebhooks200JSONResponse{Items: []apigen.Webhook{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListWebhooks(ctx, ctldb.ListWebhooksParams{After: optional.Value(req.Params.After), Most: int32(limit + 1)})
		if err != nil {
			return err
		}
		if len(rows) > limit {
			rows = rows[:limit]
			out.Next = rows[limit-1].ID
		}
		for _, row := range rows {
			view, err := h.view(ctx, tx, row)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, view)
		}
		return nil
	})
	return out, err
}

// GetWebhook answers one webhook.
func (h *Handlers) GetWebhook(ctx context.Context, req apigen.GetWebhookRequestObject) (apigen.GetWebhookResponseObject, error) {
	var out apigen.Webhook
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := find(ctx, tx, req.Webhook)
		if err != nil {
			return err
		}
		out, err = h.view(ctx, tx, row)
		return err
	})
	return apigen.GetWebhook200JSONResponse(out), err
}

// CreateWebhook makes a webhook; its secret is in this answer only.
func (h *Handlers) CreateWebhook(ctx context.Context, req apigen.CreateWebhookRequestObject) (apigen.CreateWebhookResponseObject, error) {
	b := req.Body
	var out apigen.Webhook
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		wish := webhooks.Wish{Name: &b.Name, URL: &b.URL, Kinds: b.Kinds, Apps: b.Apps, Installs: b.Installs, Labels: (*map[string]string)(b.Labels), Actor: auth.PrincipalOf(ctx).AccountName}
		if err := resolve(ctx, tx, &wish); err != nil {
			return "", err
		}
		row, secret, err := h.Webhooks.Create(ctx, tx, wish)
		if err != nil {
			return "", err
		}
		out, err = h.view(ctx, tx, row)
		out.Secret = &secret
		return fmt.Sprintf("create webhook %s to %s", row.Name, hostOf(row.URL)), err
	})
	return apigen.CreateWebhook201JSONResponse(out), err
}

// UpdateWebhook changes a webhook.
func (h *Handlers) UpdateWebhook(ctx context.Context, req apigen.UpdateWebhookRequestObject) (apigen.UpdateWebhookResponseObject, error) {
	b := req.Body
	var out apigen.Webhook
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		wish := webhooks.Wish{
			Name: b.Name, URL: b.URL, Kinds: b.Kinds, Apps: b.Apps, Installs: b.Installs, Labels: (*map[string]string)(b.Labels), Enabled: b.Enabled,
			Rotate: optional.Value(b.RotateSecret), Retire: optional.Value(b.RetireSecret), Actor: auth.PrincipalOf(ctx).AccountName,
		}
		if err := resolve(ctx, tx, &wish); err != nil {
			return "", err
		}
		row, secret, err := h.Webhooks.Update(ctx, tx, req.Webhook, wish)
		if err != nil {
			return "", err
		}
		out, err = h.view(ctx, tx, row)
		out.Secret = optional.Of(secret)
		return fmt.Sprintf("update webhook %s: %s", row.Name, wish.Changes()), err
	})
	return apigen.UpdateWebhook200JSONResponse(out), err
}

// DeleteWebhook ends a webhook.
func (h *Handlers) DeleteWebhook(ctx context.Context, req apigen.DeleteWebhookRequestObject) (apigen.DeleteWebhookResponseObject, error) {
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		row, err := h.Webhooks.Delete(ctx, tx, req.Webhook)
		return "delete webhook " + row.Name, err
	})
	return apigen.DeleteWebhook204Response{}, err
}

// TestWebhook sends a ping.
func (h *Handlers) TestWebhook(ctx context.Context, req apigen.TestWebhookRequestObject) (apigen.TestWebhookResponseObject, error) {
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		row, err := h.Webhooks.Test(ctx, tx, req.Webhook)
		return "test webhook " + row.Name, err
	})
	return apigen.TestWebhook202JSONResponse{Events: 1}, err
}

// ReplayWebhook sends events again.
func (h *Handlers) ReplayWebhook(ctx context.Context, req apigen.ReplayWebhookRequestObject) (apigen.ReplayWebhookResponseObject, error) {
	b := req.Body
	var out apigen.ReplayWebhook202JSONResponse
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		row, n, err := h.Webhooks.Replay(ctx, tx, req.Webhook, webhooks.Replay{Delivery: optional.Value(b.Delivery), Dead: optional.Value(b.Dead), After: b.After, UpTo: b.UpTo})
		out.Events = n
		return fmt.Sprintf("replay %d events to webhook %s", n, row.Name), err
	})
	return out, err
}

// ListWebhookDeliveries answers what became of each event.
func (h *Handlers) ListWebhookDeliveries(ctx context.Context, req apigen.ListWebhookDeliveriesRequestObject) (apigen.ListWebhookDeliveriesResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	out := apigen.ListWebhookDeliveries200JSONResponse{Items: []apigen.WebhookDelivery{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		hook, err := find(ctx, tx, req.Webhook)
		if err != nil {
			return err
		}
		rows, err := tx.ListDeliveries(ctx, ctldb.ListDeliveriesParams{
			WebhookID: hook.ID, State: (*string)(req.Params.State), Before: optional.Of(optional.Value(req.Params.After)), Most: int32(limit + 1),
		})
		if len(rows) > limit {
			rows = rows[:limit]
			out.Next = rows[limit-1].ID
		}
		for _, d := range rows {
			out.Items = append(out.Items, apigen.WebhookDelivery{
				ID: d.ID, EventID: d.EventID, Seq: d.EventSeq, Kind: d.EventKind, Cause: apigen.WebhookDeliveryCause(d.Cause), State: apigen.WebhookDeliveryState(d.State),
				Attempts: int(d.Attempts), NextAt: d.NextAt, Status: number(d.Status), Error: d.Error, Response: d.Response, TookMs: number(d.TookMs),
				CreatedAt: d.CreatedAt, AttemptedAt: d.AttemptedAt, FinishedAt: d.FinishedAt,
			})
		}
		return err
	})
	return out, err
}

func (h *Handlers) view(ctx context.Context, tx *database.Tx, row ctldb.Webhook) (apigen.Webhook, error) {
	filters, err := webhooks.FiltersOf(row)
	if err != nil {
		return apigen.Webhook{}, err
	}
	secrets, err := h.Webhooks.SecretsOf(row)
	if err != nil {
		return apigen.Webhook{}, err
	}
	counts, err := tx.DeliveryCounts(ctx, row.ID)
	return apigen.Webhook{
		ID: row.ID, Name: row.Name, URL: row.URL, Kinds: filters.Kinds, Apps: filters.Apps, Installs: filters.Installs, Labels: filters.Labels,
		State: apigen.WebhookState(row.State), Secrets: secrets, Position: row.Position, Pending: counts.Pending, Dead: counts.Dead,
		FailingSince: row.FailingSince, SucceededAt: row.SucceededAt, CreatedBy: row.CreatedBy, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}, err
}

// resolve turns names of apps and installs into ids.
func resolve(ctx context.Context, tx *database.Tx, w *webhooks.Wish) error {
	if w.Apps != nil {
		ids := []string{}
		for _, ref := range *w.Apps {
			app, err := tx.FindApp(ctx, ref)
			if err != nil {
				return fault.Newf(fault.ErrNotFound, "there is no app %q", ref)
			}
			ids = append(ids, app.ID)
		}
		w.Apps = &ids
	}
	if w.Installs != nil {
		ids := []string{}
		for _, ref := range *w.Installs {
			install, err := installs.Find(ctx, tx, ref)
			if err != nil {
				return fault.Newf(fault.ErrNotFound, "there is no install %q", ref)
			}
			ids = append(ids, install.ID)
		}
		w.Installs = &ids
	}
	return nil
}

func find(ctx context.Context, tx *database.Tx, ref string) (ctldb.Webhook, error) {
	row, err := tx.FindWebhook(ctx, ref)
	if err != nil {
		return row, fault.Newf(fault.ErrNotFound, "there is no webhook %q", ref)
	}
	return row, nil
}

func number(n *int32) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

// hostOf is what the chain may tell of an address: its path may be a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
