-- What runners tell of their secrets, never values; all inside store.Tx of the org.

-- name: RunnerPutSecret :execrows
-- The version that a runner has. No row is touched that says so already.
INSERT INTO install_secrets (org_id, install_id, name, version, present, digest, set_by, set_at)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(name), sqlc.arg(version), sqlc.arg(present), sqlc.arg(digest), sqlc.arg(set_by), sqlc.arg(set_at)::timestamptz)
ON CONFLICT (org_id, install_id, name) DO UPDATE
SET version = excluded.version, present = excluded.present, digest = excluded.digest, set_by = excluded.set_by, set_at = excluded.set_at
WHERE (install_secrets.version, install_secrets.present, install_secrets.digest) IS DISTINCT FROM (excluded.version, excluded.present, excluded.digest);

-- name: RunnerLacksSecrets :execrows
-- The runner has only the named ones.
UPDATE install_secrets SET present = false
WHERE install_id = sqlc.arg(install_id) AND present AND NOT name = ANY (sqlc.arg(names)::text[]);
