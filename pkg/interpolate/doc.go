// Package interpolate owns the template language of app configs: which strings
// are templates, what they refer to, and how they are rendered.
//
// The language is Go's text/template with those Sprig functions that give the
// same answer every time: nothing reads the network, the environment, files,
// the clock or a random source. `now` is the time given by the caller; times
// are in UTC. keys and values are sorted. get, dig, default and hasKey may ask
// for what is not there, as they do in Sprig.
//
// Templates read one tree ([NewTree], [NewState]), reachable as .nuon and as
// .berth. A key that is not there is an error that names its path and what is
// there instead; nothing is ever rendered as an empty string by accident.
// Nothing is HTML-escaped.
//
// # Which strings are templates
//
// A string is a template when one of its actions mentions .nuon, .berth or
// .action.inputs ([IsTemplate]); every other string stays as it is, byte by
// byte. READMEs always are templates ([RenderAlways]).
//
// A template may carry actions of other languages, such as a values file with
// a Kyverno policy in it. Each action is judged alone: one that begins with
// a name of another language (request.object.kind, github.ref, to_upper(…),
// element, @) stays as it is, and the rest is rendered. Only what Go's
// templates refuse in any case is left alone like this, so a misspelt function
// is still an error, and so is {{ pod }}: a lone word can be either. It can be
// kept by quoting it: {{ `{{ pod }}` }}. [Literals] lists what stays;
// {{nuon.install.id}}, which lacks its dot, is among it and marked.
//
// # What they refer to
//
// [References] finds what a template reads in its syntax tree. Whatever
// rendering reads is covered by one of the references it gives; a fuzz test
// holds that by taking everything else out of the tree.
//
// # Limits
//
// Templates come from app authors, so rendering is bounded: in steps, which
// are the same on every machine, in time, in output, in the depth of calls, in
// the size of every value on the way, and in the code of the template itself.
// A template that goes beyond a limit ends with an error that names the limit.
package interpolate
