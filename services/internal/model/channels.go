package model

// Channel is one of NOTIFY. A notification is a hint that something moved; its key
// says of what.
type Channel string

// The channels, each with its key.
const (
	ChannelJobs     Channel = "berth_jobs"     // runner: a job of it was queued, or is to be stopped
	ChannelSettings Channel = "berth_settings" // runner: its settings have a newer version
	ChannelRevoked  Channel = "berth_revoked"  // token or runner that is good no more
	ChannelWorkflow Channel = "berth_workflow" // workflow: it has more events
	ChannelBuild    Channel = "berth_build"    // app: a build of it moved, or a release of it was made
	ChannelOutbox   Channel = "berth_outbox"   // nothing: events wait for their numbers
	ChannelEvents   Channel = "berth_events"   // org: its stream has more events
	ChannelLogs     Channel = "log_streams"    // log stream: it has more lines, or has ended
)
