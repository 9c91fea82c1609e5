package httpserver

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/pkg/intake"
)

const (
	defaultMaxBody   = 1 << 20  // JSON that people or programs write by hand is far below
	defaultMaxStream = 64 << 20 // archives
	maxStray         = 4 << 10  // bodies of operations that take none: some clients send {}

	// MaxUnproven bounds a body that is the proof itself, whatever its operation
	// allows: it is read for anybody.
	MaxUnproven = 256 << 10

	// bodyRate is 48 MiB, the largest body there is, in 5 minutes.
	bodyRate     = 160 << 10
	bodyDeadline = 5 * time.Minute

	defaultConnections = 10_000
	defaultMemoryMiB   = 256
	defaultGrace       = 10 * time.Second
)

// Limits of what callers can make a server hold, as settings of its service. The
// zero Limits are the defaults.
type Limits struct {
	// MaxConnections that are open at once. When all are taken, a new one takes
	// the place of one without a request.
	MaxConnections int `env:"BERTH_MAX_CONNECTIONS" default:"10000"`
	// BodyMemoryMiB bounds the bodies that are held at once, in MiB, of those who
	// have proved who they are; one of them gets a quarter. A sixteenth of it
	// comes on top for all those who have not.
	BodyMemoryMiB int `env:"BERTH_BODY_MEMORY_MIB" default:"256"`
	// BodyGrace is how long a caller may take for a body, plus the time that
	// its bytes need at 160 KiB/s; for a body that is the proof itself, in all.
	BodyGrace time.Duration `env:"BERTH_BODY_GRACE" default:"10s"`
}

// Validate reports every limit that does not work, at once.
func (l Limits) Validate() error {
	var errs []error
	if n := l.Connections(); n < 16 || n > 1_000_000 {
		errs = append(errs, fmt.Errorf("BERTH_MAX_CONNECTIONS is %d, want 16 to 1000000", n))
	}
	if n := l.Memory() >> 20; n < 64 || n > 1<<20 {
		errs = append(errs, fmt.Errorf("BERTH_BODY_MEMORY_MIB is %d, want 64 to 1048576", n))
	}
	if d := l.Grace(); d < 100*time.Millisecond || d > 5*time.Minute {
		errs = append(errs, fmt.Errorf("BERTH_BODY_GRACE is %s, want 100ms to 5m", d))
	}
	return errors.Join(errs...)
}

// Connections is MaxConnections, or its default.
func (l Limits) Connections() int { return cmp.Or(l.MaxConnections, defaultConnections) }

// Memory is BodyMemoryMiB in bytes, or its default.
func (l Limits) Memory() int64 { return int64(cmp.Or(l.BodyMemoryMiB, defaultMemoryMiB)) << 20 }

// Grace is BodyGrace, or its default.
func (l Limits) Grace() time.Duration { return cmp.Or(l.BodyGrace, defaultGrace) }

// bodies knows how the body of each operation may be read.
type bodies struct {
	limits           map[string]int64
	grace            time.Duration
	proven, unproven *intake.Memory
}

func newBodies(cfg Config) bodies {
	total := cfg.Limits.Memory()
	// The largest body must fit into one caller's share.
	share := max(total/4, defaultMaxStream)
	for _, limit := range cfg.BodyLimits {
		share = max(share, limit)
	}
	strangers := total / 16
	return bodies{
		limits: cfg.BodyLimits, grace: cfg.Limits.Grace(),
		proven: intake.NewMemory(total, share), unproven: intake.NewMemory(strangers, strangers),
	}
}

// largest is how large the body of a request may be.
func (b bodies) largest(c *gin.Context) int64 {
	if limit, ok := b.limits[OperationID(c)]; ok {
		return limit
	}
	op := operationOf(c)
	switch {
	case op == nil || op.route.Operation.RequestBody == nil:
		return maxStray
	case op.streams(c.ContentType()):
		return defaultMaxStream
	}
	return defaultMaxBody
}

// Proven lets the body of a request be read, up to the limit of its operation:
// the caller has proved by its headers to be holder. It refuses one who asks too
// often, a body that is declared too large, or for which there is no memory now.
func Proven(c *gin.Context, holder string) error {
	s := serverOf(c)
	if s == nil {
		return nil
	}
	c.Set(provenKey, true)
	leaveLine(c)
	if err := s.pacer.count(c, holder); err != nil {
		return err
	}
	return intake.BodyOf(c.Request.Context()).Open(intake.Terms{
		MaxBytes: s.bodies.largest(c), Memory: s.bodies.proven, Holder: holder,
		Pace: intake.Pace{Grace: s.bodies.grace, BytesPerSecond: bodyRate, Deadline: bodyDeadline},
	})
}

// Unproven lets the body of a request be read that is the proof itself, such as
// one with a single-use secret in it: a small body, soon, from memory that only
// such requests share.
func Unproven(c *gin.Context) error {
	s := serverOf(c)
	if s == nil {
		return nil
	}
	leaveLine(c)
	return intake.BodyOf(c.Request.Context()).Open(intake.Terms{
		MaxBytes: min(s.bodies.largest(c), MaxUnproven), Memory: s.bodies.unproven,
		Pace: intake.Pace{Grace: s.bodies.grace},
	})
}
