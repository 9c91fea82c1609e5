-- What only the customer can open, as runner-api gives it out and takes it back.

-- name: GetInstallRecovery :one
SELECT * FROM install_recovery WHERE install_id = sqlc.arg(install_id);

-- name: NewestRecipient :one
-- Whom ctl-api seals to.
SELECT * FROM install_recipients WHERE install_id = sqlc.arg(install_id) ORDER BY number DESC LIMIT 1;

-- name: AddRecipient :exec
INSERT INTO install_recipients (org_id, install_id, number, machine_key, seal_recipient, recovery_key_id, recovery_signing_key, recovery_recipient, reason, evidence)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(number), sqlc.arg(machine_key), sqlc.arg(seal_recipient), sqlc.narg(recovery_key_id),
        sqlc.narg(recovery_signing_key), sqlc.narg(recovery_recipient), sqlc.arg(reason), sqlc.narg(evidence))
ON CONFLICT DO NOTHING;

-- name: ConsentedReplacement :one
-- Whether the customer consented to a replacement that this key has used.
SELECT EXISTS (SELECT FROM enrolments WHERE runner_id = sqlc.arg(runner_id) AND replaces AND state = 'used' AND bound_key = sqlc.arg(key)::text)::boolean AS consented;
