// Package launcher is the first process of an engine: between the agent's fork
// and the engine's first instruction it takes away what the engine must not
// have.
//
// As root it is the first process of new mount, process and ipc namespaces. It
// hides the runner's data directory under an empty one and shows in that only
// the folder of this job and the scratch of the install, each at its usual
// path; what the agent gave (in/) is read-only there. /proc is the engine's
// own, /tmp and its like are empty and private. Then it drops every capability,
// takes the job's user, forbids itself new privileges, and becomes the engine.
//
//	/                        the machine's, read as the job's user
//	/proc                    of this namespace
//	/tmp /var/tmp /dev/shm   empty, private
//	DATA/                    empty, read-only, but for:
//	  jobs/<attempt>/engine/ the job's folder
//	    in/                  read-only
//	  install/               scratch; its files' owner appears as the job's user
//
// Without root it is in a new user namespace too, which has the agent's user and
// nobody else. The engine keeps that user, so it is shown less (Sight.Strict):
//
//	/                        read-only, and only the directories of programs
//	/dev                     harmless devices, terminals of its own
//	DATA/jobs/<attempt>/engine/ read-only, but for out/ and work/
//
// There it may make no further user namespace, and reaches abstract sockets of
// its own only, where the kernel knows how.
//
// It is the agent's own executable, started under another name (Name), and works
// while that program initialises: before main, and before most packages, since
// an engine should not wait for what only an agent needs. So it is imported for
// that effect by whatever program starts engines. It may import of the standard
// library only what is initialised early itself: packages are initialised by
// their names as soon as what they import is, so one import of path/filepath
// costs 10 ms.
//
// It waits for its [Plan] on a pipe. The agent starts it while it prepares the
// job's folder, and writes the plan once the start is counted and on record; an
// agent that dies before writes none, and then nothing was started. The namespaces
// are as old as the launcher: what is mounted on the machine meanwhile, the engine
// may not see. With control groups v1 it joins its own first thing; in those of v2
// it was born.
package launcher
