// Package stream is the one stream of events of an org: what happened, numbered
// without gaps.
//
//	transaction ─▶ triggers ─▶ event_outbox ─▶ Sequencer ─▶ events ─▶ Read ─▶ GET /events
//	 (any service)             (no number)     (numbers)       │
//	                                                           └─▶ package webhooks
//
// Which kinds there are is in pkg/event; what writes them, in migration 00280.
//
// A transaction that changes something writes its events without a number, so it
// waits for nobody. The Sequencer numbers committed rows, one transaction at a
// time in all replicas. It moves rows out of the outbox; it never remembers "up to
// id n". So a transaction that commits late loses nothing: its rows are still
// there and get their numbers then. Killed at any point it leaves either the row in
// the outbox or the numbered event, because both are one transaction.
//
// What is promised: per org, numbers begin at 1 and have no gaps; an event never
// changes its number; a reader that has seen number n never sees a lower one
// appear later; what was committed before something else began has the lower
// number.
package stream
