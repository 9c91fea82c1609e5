// Package drift explains how an object of a cluster differs from what a release
// wants of it: what differs, who did it as far as managedFields tell, and
// whether somebody has to hear of it. It is pure: package survey reads the
// cluster for it, when the runner's schedule asks for jobspec.OperationDrift.
//
//	Object (wanted, live, tried) ─▶ Explain ─▶ Finding ─┐
//	Rules ──────────────────────────────────────────────┴▶ Report.Accept ─▶ Lines, Result
//
// # Classes
//
//	defaulted     nobody, or only Berth's own request, set it: the API server or
//	              an admission webhook filled what the release does not set, or
//	              wrote it in another form
//	controller    a manager owns it that is a controller: it also writes the
//	              status of the object, or it writes replicas through the scale
//	              subresource, or it is known or named as one
//	human_edit    a tool that a person or a pipeline starts owns it: kubectl,
//	              k9s, Lens, a browser, curl, helm run by hand; or replicas are
//	              0 in the place of a number of the release and nobody owns them,
//	              which only a scale to 0 brings about
//	real          it differs and nobody in managedFields explains it: a removed
//	              field, a value under Berth's own name, an object that is gone,
//	              left over or made again
//	unknown       it cannot be told: a manager that nobody knows, managedFields
//	              that are empty or cannot be read, no dry run
//
// All but the first two are shown until a Rule accepts the difference; those that are
// human_edit or real are drift, of which somebody hears.
//
// # How it is decided
//
// What an apply would bring is the answer to a dry run by server-side apply: so
// "1000m" and "1" do not differ. Fields are walked with managedFields next to
// them, which also say how the items of a list are told apart. The owners of a
// field decide, by what they do first (subresources) and by name second; of
// several, the one that is worst. The table of names is in managers.go.
//
// # What it cannot know
//
//   - managedFields name programs, not people, and a client may give any name,
//     also Berth's or that of a controller.
//   - A change through the scale subresource has no time.
//   - A removed field leaves no trace: it is real, and who wrote last is only a
//     hint.
//   - What a webhook fills in a request has no owner: it looks like a default.
//   - After ten writers the API server merges the oldest; they are unknown.
//   - The order of a list whose items have keys is not compared.
//   - Engines record no uid: only where the caller knows it, an object that was
//     made again is certain. Else one is unknown of which Berth has nothing and
//     that somebody else wrote to in the second in which it was made.
//   - status, and what the API server keeps for itself, is not compared, as in
//     plans.
package drift
