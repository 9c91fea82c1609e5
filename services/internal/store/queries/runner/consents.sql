-- What runners tell of the customer's consent; all inside store.Tx of the org.

-- name: RunnerPutConsent :execrows
-- The newest word on a change of the install, which counts only for the effect that the
-- runner planned. No row is touched that says so already.
INSERT INTO consents (org_id, install_id, change_id, effect_digest, state, why, answered_by, still, answered_at, until)
SELECT c.org_id, c.install_id, c.id, sqlc.arg(effect_digest), sqlc.arg(state), coalesce(sqlc.narg(why)::text, ''), sqlc.arg(answered_by)::text[], coalesce(sqlc.narg(still)::int, 0), sqlc.narg(answered_at), sqlc.narg(until)
FROM changes c WHERE c.install_id = sqlc.arg(install_id) AND c.id = sqlc.arg(change_id) AND coalesce(c.effect_digest, sqlc.arg(effect_digest)) = sqlc.arg(effect_digest)
ON CONFLICT (org_id, change_id) DO UPDATE
SET effect_digest = excluded.effect_digest, state = excluded.state, why = excluded.why, answered_by = excluded.answered_by, still = excluded.still, answered_at = excluded.answered_at, until = excluded.until, told_at = now()
WHERE (consents.effect_digest, consents.state, consents.why, consents.answered_by, consents.still, consents.answered_at, consents.until)
   IS DISTINCT FROM (excluded.effect_digest, excluded.state, excluded.why, excluded.answered_by, excluded.still, excluded.answered_at, excluded.until);
