-- What is sealed at rest for an org, to be sealed again in another form.

-- name: LockOrgSealForm :one
-- The form in which the org's rows are sealed, locked.
SELECT seal_form FROM orgs WHERE org_id = berth.current_org() FOR UPDATE;

-- name: SetOrgSealForm :exec
UPDATE orgs SET seal_form = sqlc.arg(seal_form) WHERE org_id = berth.current_org();

-- name: SealedKeys :many
SELECT id, key_id, private_sealed FROM keys WHERE private_sealed IS NOT NULL;

-- name: SetSealedKey :exec
UPDATE keys SET private_sealed = sqlc.arg(sealed)::bytea WHERE id = sqlc.arg(id);

-- name: SealedInputs :many
SELECT install_id, version, sealed FROM install_inputs WHERE sealed IS NOT NULL;

-- name: SetSealedInputs :exec
UPDATE install_inputs SET sealed = sqlc.arg(sealed)::bytea WHERE install_id = sqlc.arg(install_id) AND version = sqlc.arg(version);

-- name: SealedVariables :many
SELECT app_id, name, sealed FROM app_variables WHERE sealed IS NOT NULL;

-- name: SetSealedVariable :exec
UPDATE app_variables SET sealed = sqlc.arg(sealed)::bytea WHERE app_id = sqlc.arg(app_id) AND name = sqlc.arg(name);

-- name: SealedAnswers :many
SELECT account_id, key, response FROM idempotency_keys WHERE response IS NOT NULL;

-- name: SetSealedAnswer :exec
UPDATE idempotency_keys SET response = sqlc.arg(sealed)::bytea WHERE account_id = sqlc.arg(account_id) AND key = sqlc.arg(key);

-- name: SealedHandovers :many
SELECT id, install_id, decode(body->>'handover', 'base64')::bytea AS sealed FROM stack_versions WHERE body ? 'handover';

-- name: SetSealedHandover :exec
UPDATE stack_versions SET body = jsonb_set(body, '{handover}', to_jsonb(sqlc.arg(sealed)::text)) WHERE id = sqlc.arg(id);
