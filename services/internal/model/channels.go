package model

// The channels of NOTIFY. A notification is a hint that something moved; its key
// says of what.
const (
	ChannelJobs     = "berth_jobs"     // runner id: a job of it was queued or is to be cancelled
	ChannelSettings = "berth_settings" // install id: its settings have a new version
	ChannelRevoked  = "berth_revoked"  // what was revoked
	ChannelWorkflow = "berth_workflow" // workflow id: something of it moved
	ChannelBuild    = "berth_build"    // app id: a build of it moved or a release was made
	ChannelLogs     = "log_streams"    // stream id: it has more lines or has ended
)
