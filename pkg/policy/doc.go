// Package policy is the contract of the policy engine: which rules are held against which
// documents, and what that gives. The engine is an executable of its own, berth-policy; who
// asks it reads and writes this package's types as JSON and never links a rule language.
//
// Rules come from two sides. The vendor's policies travel with a job and are the control
// plane's to enforce; the customer's guardrails stand with the runner, which enforces them.
// Results have the names of the policy-report format (wgpolicyk8s.io), and one more: unknown,
// for what the engine cannot answer. Neither unknown nor error is ever a pass.
package policy
