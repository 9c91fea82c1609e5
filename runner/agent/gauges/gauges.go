// Package gauges are the numbers by which a customer watches a runner: whether it reaches its
// control plane, what it needs of the machine, and how long it would go on alone. Nothing is
// looked at while nobody collects (docs/reference/metrics.md).
package gauges

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/telemetry"
)

// Facts are what the agent knows when somebody looks.
type Facts struct {
	Connected bool
	// SettingsLeft is how long the settings that were signed last still count, 0 once they
	// have expired.
	SettingsLeft time.Duration
	DiskFree     int64 // bytes
	Jobs         int
}

var (
	instruments  = telemetry.InstrumentsOf("runner/agent")
	connected    = instruments.Gauge("runner.control.connected", "{connection}", "whether the control plane is reached: 1, else 0")
	settingsLeft = instruments.Gauge("runner.settings.left", "s", "how long the runner starts by itself what changes things; 0 once its settings have expired")
	diskFree     = instruments.Gauge("runner.disk.free", "By", "room on the disk of the data directory")
	jobs         = instruments.Gauge("runner.job.running", "{job}", "attempts that the agent works on")
	memory       = instruments.Gauge("runner.memory.used", "By", "resident memory of the agent, without engines")
	cpu          = instruments.Gauge("runner.cpu.used", "{core}", "cores that the agent used since the look before, without engines")
)

// Watch gives these numbers to who collects, until stop.
func Watch(look func() Facts) (stop func()) {
	used := processor{used: cpuTime(), at: time.Now()}
	return instruments.Observe(func(_ context.Context, o metric.Observer) error {
		f := look()
		o.ObserveFloat64(connected, map[bool]float64{true: 1}[f.Connected])
		o.ObserveFloat64(settingsLeft, max(f.SettingsLeft.Seconds(), 0))
		o.ObserveFloat64(diskFree, float64(f.DiskFree))
		o.ObserveFloat64(jobs, float64(f.Jobs))
		if bytes, ok := resident(); ok {
			o.ObserveFloat64(memory, float64(bytes))
		}
		o.ObserveFloat64(cpu, used.since(cpuTime(), time.Now()))
		return nil
	}, connected, settingsLeft, diskFree, jobs, memory, cpu)
}

// processor is how much of it was used at the last look.
type processor struct {
	mu    sync.Mutex
	used  time.Duration
	at    time.Time
	cores float64
}

// shortest is how far two looks have to be apart for a number of their own; two who collect at
// once see the same.
const shortest = time.Second

// since is how many cores were used since the look before.
func (p *processor) since(used time.Duration, now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wall := now.Sub(p.at); wall >= shortest {
		p.cores = max((used-p.used).Seconds()/wall.Seconds(), 0)
		p.used, p.at = used, now
	}
	return p.cores
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident is the memory of this process in bytes, false where the kernel does not say.
func resident() (int64, bool) {
	raw, err := os.ReadFile("/proc/self/statm") // see proc(5): pages in all, resident, …
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
