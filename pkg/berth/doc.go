// Package berth is the Go client of Berth: the generated client of the public
// API (pkg/ctlapi) with what every program needs around it.
//
//   - Credentials: a token, and an org for those who belong to several. They go
//     to the control plane's own address and nowhere else, redirects included.
//   - Repeating: a request that meets a control plane which is away, restarting
//     or busy is sent again. Every POST carries an Idempotency-Key, the same one
//     each time, so that repeating it does nothing twice.
//   - Lists: iterators that read page after page.
//   - Waiting: for a workflow, a config or a build to end.
//   - Errors: what the control plane refuses is a *Problem, with the code that
//     programs branch on.
//
// Every operation of the contract is a method of Client, from ctlapi; an answer
// other than 2xx is an error of it.
package berth
