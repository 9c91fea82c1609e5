package intake

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// An address may show failureBurst bad credentials at once and failureRate
	// each second. A site of a thousand runners behind one address, all of whose
	// sessions are gone, is through in a minute.
	failureBurst = 300
	failureRate  = 20.0

	// maxAddresses bounds the memory of Failures, to about 1 MB.
	maxAddresses = 8192

	// suspectsAtOnce is how many credentials from addresses over their limit are
	// looked up at once; the others wait in line and leave the database to those
	// who did nothing wrong.
	suspectsAtOnce = 4
)

// Failures counts bad credentials by the address that showed them. Only those
// count: a good credential is served, however many bad ones came from the same
// address, so that nobody is locked out by somebody behind the same proxy.
type Failures struct {
	now   func() time.Time
	slots chan struct{}

	mu      sync.Mutex
	buckets map[netip.Prefix]*bucket
}

type bucket struct {
	left  float64
	since time.Time
}

// NewFailures counts from zero; now is time.Now when nil.
func NewFailures(now func() time.Time) *Failures {
	if now == nil {
		now = time.Now
	}
	return &Failures{now: now, slots: make(chan struct{}, suspectsAtOnce), buckets: map[netip.Prefix]*bucket{}}
}

// Enter waits for its turn when the address is over its limit, before its
// credential is looked up. Call leave when that is done; it may be called twice.
func (f *Failures) Enter(ctx context.Context, remoteAddr string) (leave func(), err error) {
	if !f.over(remoteAddr) {
		return func() {}, nil
	}
	select {
	case f.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-f.slots }), nil
	case <-ctx.Done():
		return func() {}, context.Cause(ctx)
	}
}

// Failed counts a bad credential. over says that the address has shown too
// many, and retry how long it takes until one more is counted.
func (f *Failures) Failed(remoteAddr string) (retry time.Duration, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.bucket(prefixOf(remoteAddr))
	if b.left >= 1 {
		b.left--
		return 0, false
	}
	return time.Duration((1 - b.left) / failureRate * float64(time.Second)), true
}

func (f *Failures) over(remoteAddr string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	prefix := prefixOf(remoteAddr)
	return f.buckets[prefix] != nil && f.bucket(prefix).left < 1
}

// bucket is that of an address as it is now.
func (f *Failures) bucket(prefix netip.Prefix) *bucket {
	now := f.now()
	b := f.buckets[prefix]
	if b == nil {
		if len(f.buckets) >= maxAddresses {
			f.forget(now)
		}
		b = &bucket{left: failureBurst, since: now}
		f.buckets[prefix] = b
	}
	b.left = min(failureBurst, b.left+now.Sub(b.since).Seconds()*failureRate)
	b.since = now
	return b
}

// forget makes room: addresses that have behaved since, else any, but an eighth
// of all at once, so that it is rarely needed.
func (f *Failures) forget(now time.Time) {
	for prefix, b := range f.buckets {
		if b.left+now.Sub(b.since).Seconds()*failureRate >= failureBurst {
			delete(f.buckets, prefix)
		}
	}
	for prefix := range f.buckets {
		if len(f.buckets) <= maxAddresses*7/8 {
			return
		}
		delete(f.buckets, prefix)
	}
}

// prefixOf is what one peer can choose its address from: the address of IPv4, 64
// bits of IPv6. Peers without an address are one.
func prefixOf(remoteAddr string) netip.Prefix {
	host, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
