package access

import (
	"context"

	"github.com/berth-dev/berth/services/internal/auth"
)

// PrincipalOf returns who asks. It is the zero Principal, who may do nothing,
// outside of an authenticated request.
func PrincipalOf(ctx context.Context) auth.Principal {
	p, _ := auth.FromContext(ctx)
	return p
}
