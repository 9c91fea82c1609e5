// Package plugin is the engine of components whose type is a plugin's. It checks
// that the plugin is the one that was signed and accepted, renders and completes
// the component's config, gives the plugin a job directory of its own below work/,
// runs it within limits, and takes over what it left, as far as it is its own to
// say: a plugin says nothing of other components, of the state, or of digests.
//
//	job.json ─▶ admit ─▶ work/plugin/{job.json,in} ─▶ plugin ─▶ work/plugin/out
//	                                                                │ checked
//	                                            out/ ◀──────────────┘
//
// The agent has confined the whole process before: its user, its files, and its
// network, which a plugin has only with the permission for it.
package plugin
