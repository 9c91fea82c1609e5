// Package webhooks sends the events of an org to the addresses that the org has
// named.
//
//	events ─▶ Distributor ─▶ webhook_deliveries ─▶ Courier ─▶ receiver
//	          (which webhook    (one row per event    (signs, sends,
//	           wants which)      and webhook)          tries again)
//
// Each webhook has a position in the stream of its org. The Distributor looks at
// what is past it, makes a delivery of each event that matches, and moves the
// position in the same transaction; so no event is left out, also over restarts.
//
// The Courier works one webhook at a time as a job of River, with a claim on the
// row of the webhook. It sends a few deliveries side by side and writes down what
// became of each. Killed after sending and before writing it sends again: at least
// once, with the same id. A slow receiver takes one of many workers, for at most
// one turn; other webhooks have the others. Order is by best effort: a delivery
// that failed comes after later ones.
//
// Addresses are written by tenants, so the connection itself is checked: see
// Guard.
package webhooks
