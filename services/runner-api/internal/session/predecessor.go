package session

// Opening is what a request for a session says of itself and of the one before.
// Both ids are the agent's own, random, and on its disk before it asks.
type Opening struct {
	// ID is the session that is asked for; "" from an agent that names none.
	ID string
	// Before is the last session that the agent got an answer for; "" for none.
	Before string
}

// Last is the newest session of the runner's machine, as the rows say.
type Last struct {
	// Opening is its id; "" when the machine never named one.
	Opening string
	// Used: a request came with its token.
	Used bool
	// Known: an older session of the runner has the id that is asked for now.
	Known bool
}

// Verdict is what a request for a session is.
type Verdict string

// The verdicts.
const (
	// Continues: the same agent, continuing after the last session.
	Continues Verdict = "continues"
	// Same: it asks again for the last session, whose answer it did not get.
	Same Verdict = "same"
	// Over: it asks for a session that was used, or that is not the last one: this
	// is a request that was late on its way, or one that somebody repeats. It gets
	// no session, and says nothing about the runner: the agent asks for another.
	Over Verdict = "over"
	// Disputed: another process holds the key.
	Disputed Verdict = "disputed"
)

// Judge decides whether a request comes from the one agent that holds the
// runner's key. An agent stores an id, asks, stores that it was answered, and only
// then uses the session:
//
//	killed                         on its disk             it asks    verdict
//	before it stores the id        opened A                B after A  continues
//	stored, before it asks         opened A, asking B      B after A  continues
//	asked, before the answer       opened A, asking B      B after A  same
//	answered, before it stores it  opened A, asking B      B after A  same
//	stored, before the first use   opened B                C after B  continues
//	later                          opened B                C after B  continues
//
// A machine of which no session is known with an id continues, whatever it names:
// it is new, or its agent was updated. Once one was named, an agent that names none
// is disputed, so that a thief gains nothing by leaving it out.
func Judge(last Last, asked Opening) Verdict {
	switch {
	case last.Known:
		return Over
	case last.Opening == "":
		return Continues
	case asked.ID == "":
		return Disputed
	case asked.ID == last.Opening && last.Used:
		return Over
	case asked.ID == last.Opening:
		return Same
	case asked.Before == last.Opening:
		return Continues
	}
	return Disputed
}

// Why explains a dispute to people.
func (o Opening) Why() string {
	switch {
	case o.ID == "":
		return "an agent opened a session without naming the one before, as this machine's agent does"
	case o.Before == "":
		return "an agent opened a session that names none before it, and there was one"
	}
	return "an agent opened a session that does not follow the last one"
}
