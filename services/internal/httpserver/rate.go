package httpserver

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"github.com/berth-dev/berth/services/internal/fault"
)

// defaultRate is a hundred a second, for as long as somebody likes.
const defaultRate = 6000

// Rates is how often callers may ask, as settings of a service. The zero Rates
// are the defaults.
type Rates struct {
	// RequestsPerMinute that one caller may send to one process of the service.
	RequestsPerMinute int `env:"BERTH_REQUESTS_PER_MINUTE" default:"6000"`
}

// Validate reports a rate that does not work.
func (r Rates) Validate() error {
	if n := cmp.Or(r.RequestsPerMinute, defaultRate); n < 60 || n > 10_000_000 {
		return fmt.Errorf("BERTH_REQUESTS_PER_MINUTE is %d, want 60 to 10000000", n)
	}
	return nil
}

// maxHolders is for how many callers rates are kept before those that have been
// quiet for a minute are forgotten. Only callers with a valid credential are
// counted, so nobody can make more of them.
const maxHolders = 8192

// pacer counts requests by caller. A caller may send a minute's worth at once;
// after that they come back evenly. Each process of a service counts for itself.
type pacer struct {
	perMinute int

	mu      sync.Mutex
	holders map[string]*rate.Limiter
}

func newPacer(r Rates) *pacer {
	return &pacer{perMinute: cmp.Or(r.RequestsPerMinute, defaultRate), holders: map[string]*rate.Limiter{}}
}

// standing is how a caller stands after a request.
type standing struct {
	Left  int           // requests that it may send now
	Full  time.Duration // until it may send a whole minute's worth again
	Retry time.Duration // until the next one is served; 0 when this one is
}

// take counts a request of a caller.
func (p *pacer) take(holder string, now time.Time) standing {
	p.mu.Lock()
	limiter := p.holders[holder]
	if limiter == nil {
		if len(p.holders) >= maxHolders {
			p.forget(now)
		}
		limiter = rate.NewLimiter(rate.Limit(float64(p.perMinute)/60), p.perMinute)
		p.holders[holder] = limiter
	}
	p.mu.Unlock()
	served := limiter.AllowN(now, 1)
	tokens := max(0, limiter.TokensAt(now))
	s := standing{
		Left: int(tokens),
		Full: time.Duration((float64(p.perMinute) - tokens) / float64(limiter.Limit()) * float64(time.Second)),
	}
	if !served {
		s.Retry = time.Duration((1 - tokens) / float64(limiter.Limit()) * float64(time.Second))
	}
	return s
}

// forget drops the callers of whom nothing is left to remember.
func (p *pacer) forget(now time.Time) {
	for holder, limiter := range p.holders {
		if limiter.TokensAt(now) >= float64(p.perMinute) {
			delete(p.holders, holder)
		}
	}
}

// errTooManyRequests: the caller is known, and asks too often.
func errTooManyRequests(perMinute int) error {
	return fault.With(fault.Newf(fault.ErrRateLimited, "more than %d requests in a minute", perMinute),
		fault.Code("rate_limited"), fault.Remedy("wait for the seconds of Retry-After; instead of asking again and again, wait with ?wait= or follow the events"))
}

// count holds a caller to its rate and tells it how it stands
// (draft-ietf-httpapi-ratelimit-headers-10).
func (p *pacer) count(c *gin.Context, holder string) error {
	s := p.take(holder, time.Now())
	c.Header("RateLimit-Policy", fmt.Sprintf(`"requests";q=%d;w=60`, p.perMinute))
	c.Header("RateLimit", fmt.Sprintf(`"requests";r=%d;t=%d`, s.Left, seconds(s.Full)))
	if s.Retry == 0 {
		return nil
	}
	c.Header("Retry-After", fmt.Sprint(max(1, seconds(s.Retry))))
	return errTooManyRequests(p.perMinute)
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
