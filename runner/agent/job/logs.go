package job

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/pkg/logship"
)

// logs bring the output of one attempt to log-ingest.
type logs struct {
	spool   *logship.Spool
	secrets *secrets
	log     *slog.Logger
	token   atomic.Pointer[string]
	withholding
	// keep writes down how a log ended that was delivered; nil for nothing.
	keep func(stream string, end logship.Head) error

	ended chan struct{} // closed when nobody writes to the files any more
	given chan struct{} // closed when the spool takes no end: what it has is not waited for
	tails sync.WaitGroup
}

func newLogs(spool *logship.Spool, known *secrets, log *slog.Logger) *logs {
	l := &logs{spool: spool, secrets: known, log: log, ended: make(chan struct{}), given: make(chan struct{})}
	l.setToken("")
	return l
}

func (l *logs) setToken(token string) { l.token.Store(&token) }

// remark adds a line of the agent's own.
func (l *logs) remark(text string, at time.Time) {
	if err := l.spool.Remark(l.secrets.set.String(text), at); err != nil {
		l.log.Warn("log line is lost", "err", err)
	}
}

// follow tails the files of the engine until finish.
func (l *logs) follow(ctx context.Context, stdout, stderr string) {
	for source, path := range map[logship.Source]string{logship.Stdout: stdout, logship.Stderr: stderr} {
		l.tails.Go(func() {
			tail := logship.Tail{Spool: l.spool, Path: path, Source: source, Redact: &withheld{secrets: l.secrets, withholding: l.withholding, log: l.log}}
			if err := tail.Run(ctx, l.ended); err != nil && ctx.Err() == nil {
				l.log.WarnContext(ctx, "output of the engine cannot be followed", "source", source, "err", err)
			}
		})
	}
}

// drain takes what is left of the files. Nobody may write to them any more.
func (l *logs) drain() {
	close(l.ended)
	l.tails.Wait()
}

// giveUp ends ship: the spool stays as it is.
func (l *logs) giveUp() { close(l.given) }

// ship sends the lines until the stream is finished; then nothing is left of
// them on this machine. It returns early only with ctx.
// Without a stream nobody wants the lines.
func (l *logs) ship(ctx context.Context, sinks Sinks, stream string) {
	if stream == "" {
		if err := l.spool.Remove(); err != nil {
			l.log.WarnContext(ctx, "log spool cannot be removed", "err", err)
		}
		return
	}
	sink, err := sinks.Sink(ctx, stream, func() string { return *l.token.Load() })
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.given:
			cancel()
		case <-ctx.Done():
		}
	}()
	err = logship.Shipper{Spool: l.spool, Sink: sink, Log: l.log, Withhold: l.ofSpool()}.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil, errors.Is(err, logship.ErrClosed), errors.Is(err, logship.ErrFinished):
		if err == nil && l.keep != nil {
			if err := l.keep(stream, l.spool.Position().Head); err != nil {
				l.log.WarnContext(ctx, "digest of a log is not kept", "stream_id", stream, "err", err)
			}
		}
		if err != nil { // the attempt is void, or was ended for this runner
			l.log.InfoContext(ctx, "nobody takes lines of this attempt any more, its log ends here", "stream_id", stream, "reason", err)
		}
		if err := l.spool.Remove(); err != nil {
			l.log.WarnContext(ctx, "log spool cannot be removed", "err", err)
		}
	default:
		l.log.ErrorContext(ctx, "log cannot be delivered and stays in the spool", "stream_id", stream, "err", err)
		_ = l.spool.Close()
	}
}
