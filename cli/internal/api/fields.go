package api

import (
	"strconv"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Value is what an optional field holds, the zero value when it is left out.
func Value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// Optional is nil for what was not given.
func Optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Number is the number of a config or a release, "" when there is none.
func Number(ref *ctlapi.NumberRef) string {
	if ref == nil {
		return ""
	}
	return strconv.Itoa(ref.Number)
}

// BuildTime is how long a finished build took.
func BuildTime(b ctlapi.Build) time.Duration {
	from := b.CreatedAt
	if b.StartedAt != nil {
		from = *b.StartedAt
	}
	return Value(b.FinishedAt).Sub(from)
}
