package agent

import (
	"time"

	"github.com/berth-dev/berth/runner/agent/control"
)

// steadySession is how long a session must have lasted for its end to be a new
// story. One that ends sooner has failed, whatever ended it.
const steadySession = 30 * time.Second

// reopen decides how long to wait before the next session is opened, from how
// many failed in a row and how long the last one lasted; 0 for one that was
// never opened. The waits are those of control.Backoff, so they have jitter and
// end at 8 s.
func reopen(failures int, lasted time.Duration) (wait time.Duration, inARow int) {
	if lasted >= steadySession {
		failures = 0
	}
	return control.Backoff(failures), failures + 1
}
