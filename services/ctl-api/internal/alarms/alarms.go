// Package alarms says in words what an alarm is about. Alarms are raised where
// something is noticed (runner-api, and ctl-api for recipients), recorded in the
// org's chain, and open until somebody acknowledges them: most tell of what happened
// once, which no later state undoes.
package alarms

// Text is what an alarm means.
type Text struct {
	Cause  string // what happened, in a sentence
	Remedy string // what to do about it
}

// texts has a row for every kind; docs/reference/alarms.md lists them too.
var texts = map[string]Text{
	"late_result": {
		"a runner reported the end of an attempt that was already over: it had lost its lease, or its machine had been replaced",
		"the report changed nothing; if the attempt may have changed something, compare its outcome with what is live",
	},
	"enrolment": {
		"somebody used an enrolment secret a second time, or for a runner that has another key",
		"find out who has the secret; make a new one with berth installs stack INSTALL --new if it was you",
	},
	"chain_fork": {
		"the runner has a different history of the install from the one it sent before",
		"ask the customer: an older copy of the data directory, a clone of the machine, or a thief with its key; the customer decides with berth-runner chain accept",
	},
	"chain_behind": {
		"the runner has less of the install's chain than it sent before",
		"the customer decides on the runner's machine: berth-runner chain restore, or berth-runner chain accept --reason TEXT",
	},
	"handover_refused": {
		"a machine tried to replace the runner's machine without the signature of the customer's recovery key",
		"if it was the customer: berth-runner replace --recovery FILE; if not, somebody has an enrolment secret",
	},
	"replaced_without_recovery": {
		"a machine replaced the runner's machine in an install that has no recovery key; it cannot open anything sealed before",
		"make a recovery key now: berth-runner recovery new",
	},
	"recipient_refused": {
		"ctl-api could not verify the machine that is enrolled; nothing is sealed to it",
		"find out who enrolled it; if it was the customer, have the recovery key sign: berth-runner replace --recovery FILE",
	},
	"webhook_failed": {
		"nothing that was sent to a webhook has arrived for three days, and it was disabled",
		"repair the receiver, then: berth webhooks update WEBHOOK --enable, and berth webhooks replay WEBHOOK --dead",
	},
	"runner_disputed": {
		"two processes hold the key of the runner",
		"find the second one: a clone or a snapshot of the machine, or a thief; have the customer replace the machine (berth-runner replace), and rotate the secrets that the other one could open",
	},
}

// Of explains a kind. One that this version does not know is named.
func Of(kind string) Text {
	if text, known := texts[kind]; known {
		return text
	}
	return Text{Cause: "an alarm of the kind " + kind, Remedy: "see its detail, and the log of the runner"}
}
