// Package redact takes secrets out of text by their value, where bytes leave
// the customer's side: log lines, plans, results, errors.
//
// A Set holds the secrets in all forms in which tools print them: as they are,
// base64 at each of its three alignments, hex, and escaped for URLs, JSON,
// shells, HTML and XML; a secret of several lines also line by line. One automaton looks for
// all forms in one pass, so the cost does not grow with the number of secrets.
// Where forms overlap the whole stretch is replaced: nothing is left of a
// longer secret because a shorter one was found inside.
//
// What it cannot do: a secret that a tool changes in another way (encrypts,
// compresses, reverses, prints with line breaks at odd places), and text that
// has passed before the secret became known. Register secrets before a tool's
// first byte.
package redact
