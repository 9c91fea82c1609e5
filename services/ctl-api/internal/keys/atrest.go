package keys

import (
	"strconv"

	"github.com/berth-dev/berth/pkg/seal"
)

// What each sealed column of the control plane's own rows is sealed for: the row,
// so that nobody who can write to the database can pass one row's secret off as
// another's.

// KeyAtRest is the private half of a key.
func KeyAtRest(org, keyID string) seal.Purpose { return atRest(org, keyID, "keys", "private_sealed") }

// InputsAtRest are the sensitive inputs of one version.
func InputsAtRest(org, install string, version int32) seal.Purpose {
	return atRest(org, install, "install_inputs", strconv.Itoa(int(version)))
}

// VariableAtRest is the value of a sensitive variable of an app.
func VariableAtRest(org, app, name string) seal.Purpose {
	return atRest(org, app, "app_variables", name)
}

// AnswerAtRest is the answer that is kept for a repeat of a request.
func AnswerAtRest(org, account, key string) seal.Purpose {
	return atRest(org, account, "idempotency_keys", key)
}

// ScriptAtRest are the sensitive variables of a script that is part of no release;
// digest is that of its text.
func ScriptAtRest(org, install, digest string) seal.Purpose {
	return atRest(org, install, "workflows", "script", digest)
}

// WebhookAtRest are the secrets that sign what is sent to a webhook.
func WebhookAtRest(org, webhook string) seal.Purpose {
	return atRest(org, webhook, "webhooks", "secrets")
}

// HandoverAtRest are the secrets for the supervisor of a local stack.
func HandoverAtRest(org, install string) seal.Purpose {
	return atRest(org, install, "stack_versions", "handover")
}

// LoginState is what a browser keeps of a login at an identity provider.
func LoginState(org string) seal.Purpose { return atRest(org, "login", "oidc") }

func atRest(org, row string, path ...string) seal.Purpose {
	return seal.Purpose{OrgID: org, Kind: seal.KindAtRest, Resource: row, Path: seal.Path(path...)}
}
