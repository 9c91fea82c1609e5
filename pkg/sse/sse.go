// Package sse reads streams of server-sent events, as the services send them: the
// Go client and the command line use it.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

const (
	// Silence is how long a stream may say nothing, not even "still here", before it
	// counts as broken off. Services say so every 20 s.
	Silence = 65 * time.Second

	maxEventBytes = 1 << 20
)

// Event is one event: its fields as they were sent, empty where it has none.
type Event struct {
	ID, Kind string
	Data     []byte
}

// BrokenOff is the end of a stream that should have gone on: open it again.
type BrokenOff struct{ Err error }

// Error implements error.
func (b *BrokenOff) Error() string { return "the stream broke off: " + b.Err.Error() }

// Unwrap returns the cause.
func (b *BrokenOff) Unwrap() error { return b.Err }

// Read calls handle for each event of a body until handle returns an error, which it
// returns, or the body ends, which is *BrokenOff. It closes the body.
func Read(body io.ReadCloser, handle func(Event) error) error {
	defer func() { _ = body.Close() }()
	watchdog := time.AfterFunc(Silence, func() { _ = body.Close() })
	defer watchdog.Stop()
	scanner := bufio.NewScanner(reading{body, watchdog})
	scanner.Buffer(nil, maxEventBytes)
	var e Event
	for scanner.Scan() {
		field, value, _ := bytes.Cut(scanner.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			e.ID = string(value)
		case "event":
			e.Kind = string(value)
		case "data":
			e.Data = append(e.Data, value...)
		case "": // an empty line ends an event; a comment has an empty name too
			if len(scanner.Bytes()) > 0 {
				continue
			}
			if err := handle(e); err != nil {
				return err
			}
			e = Event{}
		}
	}
	return &BrokenOff{errors.Join(scanner.Err(), io.ErrUnexpectedEOF)}
}

// reading keeps the watchdog quiet while bytes come.
type reading struct {
	io.Reader
	watchdog *time.Timer
}

func (r reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.watchdog.Reset(Silence)
	return n, err
}
