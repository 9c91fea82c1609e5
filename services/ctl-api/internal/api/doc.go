// Package api answers the routes of openapi/ctl-api.yaml: one file per noun.
//
// A request has been authenticated and authorised by its route before a handler
// sees it (door.go). A handler calls the package that owns the noun inside
// [Server.read] or [Server.write], converts, and returns; what goes wrong it
// returns as it is. write also records the mutation in the org's chain and
// makes repeats with an Idempotency-Key safe.
package api
