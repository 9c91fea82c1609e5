package model

// WebhookState is the state of a webhook.
type WebhookState string

// The states of a webhook.
const (
	WebhookEnabled  WebhookState = "enabled"
	WebhookDisabled WebhookState = "disabled" // by somebody
	WebhookFailed   WebhookState = "failed"   // by Berth: nothing arrived for three days
	WebhookDeleted  WebhookState = "deleted"
)

// DeliveryState is the state of a delivery of an event to a webhook.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending"   // waits for an attempt
	DeliveryDelivered DeliveryState = "delivered" // the receiver took it
	DeliveryDead      DeliveryState = "dead"      // the last attempt failed, or nothing is sent any more
)

// DeliveryCause says why an event is sent.
type DeliveryCause string

// The causes of a delivery.
const (
	CauseEvent  DeliveryCause = "event"
	CauseReplay DeliveryCause = "replay"
	CauseTest   DeliveryCause = "test"
)
