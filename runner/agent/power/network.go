package power

import "context"

// WaitNetwork blocks while nothing may be sent.
func (s *Switch) WaitNetwork(ctx context.Context) error { return s.Wait(ctx, Mode.Network) }

// WhileNetwork returns a context that ends as soon as nothing may be sent.
func (s *Switch) WhileNetwork(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.While(ctx, Mode.Network)
}
