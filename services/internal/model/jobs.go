package model

// JobState is the state of a runner job.
type JobState string

// The states of a runner job.
const (
	JobQueued    JobState = "queued"    // waits for its runner
	JobLeased    JobState = "leased"    // an attempt has it
	JobSucceeded JobState = "succeeded" // done
	JobFailed    JobState = "failed"    // tried and failed, or nobody knows how it came out
	JobRefused   JobState = "refused"   // the runner would not do it
	JobCancelled JobState = "cancelled" // stopped, or never begun
)

// Ended says whether nobody will work on the job any more.
func (s JobState) Ended() bool { return s != JobQueued && s != JobLeased }

// LeaseState is the state of a runner's lease of a job.
type LeaseState string

// The states of a lease.
const (
	LeaseActive LeaseState = "active"
	LeaseLost   LeaseState = "lost"  // not renewed in time; the same attempt may go on
	LeaseEnded  LeaseState = "ended" // reported, or shown dead
)

// Open says whether the lease was not ended: the same attempt may go on.
func (s LeaseState) Open() bool { return s == LeaseActive || s == LeaseLost }

// RunState is the state of a run of an action.
type RunState string

// The states of a run.
const (
	RunQueued    RunState = "queued"
	RunRunning   RunState = "running"
	RunSucceeded RunState = "succeeded"
	RunFailed    RunState = "failed"
	RunCancelled RunState = "cancelled"
	RunMissed    RunState = "missed" // its tick passed while the runner could not run it
)

// Ended says whether the run is over.
func (s RunState) Ended() bool { return s != RunQueued && s != RunRunning }

// StreamState is the state of a log stream.
type StreamState string

// The states of a log stream.
const (
	StreamOpen     StreamState = "open"
	StreamFinished StreamState = "finished" // its writer has said that it is whole
	StreamClosed   StreamState = "closed"   // its attempt is void; nothing of it is taken any more
)

// Progress is leases.progress: what the engine of a job does right now, as the runner
// told it when it last renewed the lease.
type Progress struct {
	What    string `json:"what"`
	Doing   string `json:"doing"`
	Seconds int    `json:"seconds"` // for how long, then
	Done    int    `json:"done"`
	Total   int    `json:"total"` // 0: not known
}
