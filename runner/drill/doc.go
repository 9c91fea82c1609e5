// Package drill attacks a runner: it plays a control plane that was taken over, the
// registry, somebody who works for the vendor, and vendor code that runs in an engine, and
// says which of its attacks had an effect.
//
// What is attacked is the real thing: the executables of this machine, started as its
// customer starts them, in a scratch install of their own. The drill's control plane
// listens on loopback, holds the dispatch key of that install, and signs what it likes.
//
//	Plane (hostile) ◀── polls ── berth-runner ──▶ engine ──▶ the scratch install
//	   ▲ attacks                      │ says which rule refused     │
//	   └──────────── scene ───────────┴────────── looks ◀───────────┘
//
// Whether an attack had an effect is not asked of the runner. Each attack names what there
// would be in the world if it did: a line in a file, a plaintext in what left the machine,
// a file that vendor code could read or write. The drill looks there. What the runner says
// (which rule refused it) is printed next to it, and an attack after which the runner says
// nothing at all is unclear, not refused: perhaps it never arrived.
//
// Each scene also does what is allowed, in the same way, and has to see it happen: an attack that fails
// where everything fails proves nothing.
package drill
