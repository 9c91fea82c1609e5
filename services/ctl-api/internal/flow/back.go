package flow

// Past is a time at which an install, or one of its resources, was brought to a
// release, or something of that was applied and did not come out.
type Past struct {
	WorkflowID    string
	ReleaseID     string
	Number        int32 // of the release
	InputsVersion int32
	Good          bool
	// Rollback: it was one itself.
	Rollback bool
}

// Back says to which state of before a rollback goes, and from which. past is the
// newest first. A rollback that did not come out counts for nothing: what it wanted
// to get away from is still there.
//
// With a release, it is the newest good state with it. Without, it is the newest good
// state of an earlier release than the newest one; after a failure also of the same
// release with earlier inputs, which were then what failed. It is false when there is
// none.
func Back(past []Past, releaseID string) (from, to Past, found bool) {
	for _, p := range past {
		if p.Rollback && !p.Good {
			continue
		}
		if from.ReleaseID == "" {
			from = p
			if releaseID == "" || !p.Good {
				continue
			}
		}
		switch {
		case !p.Good:
		case releaseID != "":
			if p.ReleaseID == releaseID {
				return from, p, true
			}
		case p.Number < from.Number, !from.Good && p.Number == from.Number && p.InputsVersion < from.InputsVersion:
			return from, p, true
		}
	}
	return from, Past{}, false
}
