// Package event names everything that a Berth control plane tells: the kinds of
// events in the stream of an org (GET /events), which webhooks send too. It is the
// one list: the reference page is generated from it, filters are checked against
// it, and a test holds it against what the database's triggers write.
package event
