package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/services/internal/model"
)

const (
	minListenBackoff = 50 * time.Millisecond
	maxListenBackoff = 2 * time.Second // a restart of Postgres must be over within the recovery budget of 15 s

	// A connection that died without a word is found by asking it this often.
	listenProbe = 15 * time.Second
)

// Listener holds the one connection of a process that LISTENs, and hands what
// arrives to subscribers by channel and key. Notifications are hints: after
// each (re)connect, when some may have been lost, every subscriber is woken and
// every resync function runs.
type Listener struct {
	connect  func(ctx context.Context) (*pgx.Conn, error)
	channels []model.Channel
	log      *slog.Logger
	ready    chan struct{}
	isReady  sync.Once

	mu       sync.Mutex
	subs     map[notification]map[*Subscription]struct{}
	handlers map[model.Channel][]func(key string)
	resyncs  []func(ctx context.Context)
}

// NewListener prepares a listener on channels; it does nothing before Run.
func (s *Store) NewListener(channels ...model.Channel) *Listener {
	cfg := s.pool.Config().ConnConfig
	cfg.Tracer = nil // a span that waits for minutes tells nothing
	return &Listener{
		connect:  func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, cfg.Copy()) },
		channels: channels,
		log:      s.log,
		ready:    make(chan struct{}),
		subs:     map[notification]map[*Subscription]struct{}{},
		handlers: map[model.Channel][]func(string){},
	}
}

// Subscription is woken by notifications of one channel and key.
type Subscription struct {
	// C gets at most one pending wake-up; take it, then look at the rows.
	C chan struct{}

	listener *Listener
	on       notification
}

// Subscribe wakes the subscription's C when key is notified on channel. First
// subscribe, then look for work, then wait: so nothing is missed. Close it.
func (l *Listener) Subscribe(channel model.Channel, key string) *Subscription {
	sub := &Subscription{C: make(chan struct{}, 1), listener: l, on: notification{channel: channel, key: key}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subs[sub.on] == nil {
		l.subs[sub.on] = map[*Subscription]struct{}{}
	}
	l.subs[sub.on][sub] = struct{}{}
	return sub
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	l := s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subs[s.on], s)
	if len(l.subs[s.on]) == 0 {
		delete(l.subs, s.on)
	}
}

func (s *Subscription) wake() {
	select {
	case s.C <- struct{}{}:
	default: // one wake-up is already waiting
	}
}

// Handle calls fn with the key of every notification on channel. It must not
// block: all others wait for it. Call it before Run.
func (l *Listener) Handle(channel model.Channel, fn func(key string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handlers[channel] = append(l.handlers[channel], fn)
}

// OnResync calls fn after each (re)connect, before anything that arrives
// then. Like a handler it must not block. Call it before Run.
func (l *Listener) OnResync(fn func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resyncs = append(l.resyncs, fn)
}

// Ready is closed when the listener has listened for the first time.
func (l *Listener) Ready() <-chan struct{} { return l.ready }

// Run listens until ctx is done, reconnecting with back-off. It returns nil
// when ctx ends.
func (l *Listener) Run(ctx context.Context) error {
	backoff := minListenBackoff
	for {
		listened, err := l.listen(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was to end
		}
		if listened {
			backoff = minListenBackoff
		}
		l.log.WarnContext(ctx, "listener disconnected", "err", err, "retry_in", backoff)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxListenBackoff)
	}
}

// listen serves one connection until it breaks; listened says whether it ever
// worked.
func (l *Listener) listen(ctx context.Context) (listened bool, _ error) {
	conn, err := l.connect(ctx)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // nothing is lost with it
	}()
	for _, channel := range l.channels {
		if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{string(channel)}.Sanitize()); err != nil {
			return false, fmt.Errorf("listen on %s: %w", channel, err)
		}
	}
	l.resync(ctx)
	l.isReady.Do(func() { close(l.ready) })
	for {
		if err := l.receive(ctx, conn); err != nil {
			return true, err
		}
	}
}

// receive hands on one notification, or finds after a silence that the
// connection still answers.
func (l *Listener) receive(ctx context.Context, conn *pgx.Conn) error {
	wait, cancel := context.WithTimeout(ctx, listenProbe)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	switch {
	case err == nil:
		l.dispatch(model.Channel(n.Channel), n.Payload)
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		probe, cancel := context.WithTimeout(ctx, listenProbe)
		defer cancel()
		return conn.Ping(probe)
	}
	return err
}

func (l *Listener) dispatch(channel model.Channel, key string) {
	l.mu.Lock()
	for sub := range l.subs[notification{channel: channel, key: key}] {
		sub.wake()
	}
	handlers := l.handlers[channel]
	l.mu.Unlock()
	for _, handle := range handlers {
		handle(key)
	}
}

func (l *Listener) resync(ctx context.Context) {
	l.mu.Lock()
	for _, subs := range l.subs {
		for sub := range subs {
			sub.wake()
		}
	}
	resyncs := l.resyncs
	l.mu.Unlock()
	for _, fn := range resyncs {
		fn(ctx)
	}
}
