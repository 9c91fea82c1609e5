package model

// BulkOperation is what happens in each install of a bulk operation.
type BulkOperation string

// The operations.
const (
	BulkDeploy BulkOperation = "deploy"
	BulkPause  BulkOperation = "pause"
	BulkResume BulkOperation = "resume"
)

// BulkOutcome says what came of one install of a bulk operation.
type BulkOutcome string

// The outcomes.
const (
	BulkPending BulkOutcome = "pending"
	BulkStarted BulkOutcome = "started"
	BulkDone    BulkOutcome = "done" // it starts no workflow
	BulkRefused BulkOutcome = "refused"
)
