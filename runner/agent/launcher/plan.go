package launcher

import "os"

// Name is what the launcher is called by, in place of the executable's name. Its
// other arguments are those of the engine, so that both are found as the same
// process.
const Name = "berth-launcher"

// What the launcher finds open.
const (
	planFD    = 3 // to read the plan from
	statusFD  = 4 // to write Ready on, or why there is no engine
	InheritFD = 5 // the first of those that the engine inherits
)

// Ready is what the launcher writes just before it becomes the engine. What
// follows, or stands there instead, says why there is none; nothing at all means
// that something ended the launcher.
const Ready = "+"

// RaceDetector is the environment that gives Go's race detector the same options
// as here; empty when there are none. A build with the detector waits a second
// before it ends, unless they say otherwise. It is never nil.
func RaceDetector() []string {
	const name = "GORACE"
	if options := os.Getenv(name); options != "" {
		return []string{name + "=" + options}
	}
	return []string{}
}

// Plan is what the launcher is to start, and as whom. The arguments are those of
// the launcher.
type Plan struct {
	// Path is the engine, Env its environment.
	Path string   `json:"path"`
	Env  []string `json:"env"`
	// Dir is where it starts.
	Dir string `json:"dir"`
	// UID and GID are the engine's user; 0 means the agent's own.
	UID int `json:"uid,omitempty"`
	GID int `json:"gid,omitempty"`
	// Inherit is how many files from InheritFD on the engine gets.
	Inherit int `json:"inherit,omitempty"`
	// Groups are the files by which it joins the engine's control groups, where it
	// was not born in them (v1).
	Groups []string `json:"groups,omitempty"`
	// Loopback brings up the loopback of its own network namespace, in which nothing is up.
	Loopback bool `json:"loopback,omitempty"`
	// Parental: the engine is asked to stop when the agent dies.
	Parental bool `json:"parental,omitempty"`
	// OwnUsers: the launcher is in a user namespace of its own, which has its
	// user and no other. The engine keeps that user, and loses all rights that the
	// namespace gave.
	OwnUsers bool `json:"own_users,omitempty"`
	// Sight is what the engine sees of the machine's files; nil means all that
	// its user can read. It needs a mount and a process namespace.
	Sight *Sight `json:"sight,omitempty"`
	// Bare: it sees no file at all. It is started from a descriptor, in an empty root.
	// That takes the place of a sight, and needs what a sight needs.
	Bare bool `json:"bare,omitempty"`
	// Try: do everything but start the engine, and look whether it would work.
	Try bool `json:"try,omitempty"`
}

// Sight is what an engine sees of files.
type Sight struct {
	// Data is the directory that is hidden, absolute.
	Data string `json:"data"`
	// Folder is shown in it, at its own path below Data. Closed are the names in
	// it that are read-only. With Open the whole folder is read-only but for the
	// directories of these names: it is the engine's user's own, and nothing else
	// would keep that from writing.
	Folder string   `json:"folder"`
	Closed []string `json:"closed,omitempty"`
	Open   []string `json:"open,omitempty"`
	// Scratch is shown too, "" for none. ScratchMap is the open user namespace by
	// which its owner on disk appears as the engine's user, 0 for none.
	Scratch    string `json:"scratch,omitempty"`
	ScratchMap int    `json:"scratch_map,omitempty"`
	// Shown are directories below Data that are shown too, read-only.
	Shown []string `json:"shown,omitempty"`
	// Paths are shown at their own places over all that is empty.
	Paths []Path `json:"paths,omitempty"`
	// Private directories are empty ones of the engine's own. Keep are paths in
	// them, and in those that are Empty, that stay, read-only.
	Private []string `json:"private,omitempty"`
	Keep    []string `json:"keep,omitempty"`
	// Strict shows of the rest of the machine only what the engine needs, and
	// that read-only: its user owns there what other users could not get at.
	Strict bool `json:"strict,omitempty"`
	// Empty are directories that a strict sight shows without what is in them.
	Empty []string `json:"empty,omitempty"`
}

// Path is a file or a directory of the machine that an engine sees, whatever else is
// hidden from it. No part of its name may be a symlink, and nothing of Data is shown.
type Path struct {
	Name  string `json:"name"`
	Write bool   `json:"write,omitempty"`
	// Map is the open user namespace by which its owner appears as the engine's
	// user, 0 for none.
	Map int `json:"map,omitempty"`
}
