// Package logship brings the output of a job to log-ingest: every line once,
// in order, whatever dies on the way. Both sides of the wire use it: the agent
// the whole of it, log-ingest the frames and the rules of appending.
//
//	stdout file ──▶ Tail ──▶ redact ──▶ Spool ──▶ Shipper ──▶ Sink (log-ingest)
//	 (engine)        ▲                   │ ▲          │
//	                 └── offset, kept ───┘ └── ack ───┘
//	                     with the lines
//
// An engine writes its output to a file, never to a pipe: a pipe loses lines
// when the agent dies. [Tail] reads the file, replaces secrets and gives the
// lines to the [Spool], which stores them on disk together with the offset up
// to which the file has been read. The [Shipper] sends what the spool holds in
// batches, goes back or forward to the number that the other side names, and
// frees what has been acknowledged.
//
// # Exactly once
//
// Lines and offset are one checksummed block, written by one write call. An
// agent that is killed between reading and writing reads the same lines again;
// one that is killed inside the write finds a torn block and cuts it off. The
// other direction is held by the running hash: log-ingest recognises lines
// that it already has and refuses others under the same numbers.
//
// # When the disk forgets
//
// A killed process loses nothing that it has written. A power cut may, so no
// line leaves the machine before the block that holds it is synced: otherwise
// log-ingest could know lines that the restarted agent would number again.
// Lines that were not yet synced are read again from the file of the engine.
//
// # When the disk is full
//
// A spool holds at most Options.MaxBytes. When it is full, Tail stops reading
// for Tail.FullWait (the file of the engine holds the lines meanwhile). Only
// then it drops lines, counts them, and writes one record that says how many
// (see [Record.Lost]). Nothing is dropped silently.
//
// # When lines may not leave any more
//
// A Shipper with a [Withholding] asks before each try. Once lines are to stay, it writes
// what has not left again, with a note in the place of the lines, and gives the lines to
// Withholding.Store. A batch that was under way may have arrived: the spool is astray then,
// and settles behind what the other side has.
package logship
