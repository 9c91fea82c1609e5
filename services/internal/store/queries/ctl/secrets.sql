-- What is known of the secrets of installs; all inside store.Tx of the org.

-- name: SecretsOfInstall :many
-- Names, versions and digests, by name. Nobody here has a value.
SELECT * FROM install_secrets WHERE install_id = sqlc.arg(install_id) ORDER BY name;

-- name: DeclareSecret :exec
-- What a release says of a secret.
INSERT INTO install_secrets (org_id, install_id, name, declared, needed, made, description)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(name), true, sqlc.arg(needed), sqlc.arg(made), sqlc.arg(description))
ON CONFLICT (org_id, install_id, name) DO UPDATE
SET declared = true, needed = excluded.needed, made = excluded.made, description = excluded.description;

-- name: UndeclareSecrets :exec
-- The release has only the named ones.
UPDATE install_secrets SET declared = false, needed = false, made = false
WHERE install_id = sqlc.arg(install_id) AND declared AND NOT name = ANY (sqlc.arg(names)::text[]);

-- name: SecretVersionsRead :many
-- Which version of each secret the templates of a live resource read last: those of the
-- state that its live change was planned with. Copies in the cluster say it themselves.
SELECT r.name AS resource, r.kind, k.key::text AS secret, coalesce((k.value ->> 'version')::int, 0)::int AS version
FROM resources r
JOIN changes c ON c.org_id = r.org_id AND c.id = r.live_change_id
JOIN state_versions v ON v.org_id = c.org_id AND v.install_id = c.install_id AND v.version = c.state_version
CROSS JOIN LATERAL jsonb_each(coalesce(v.tree -> 'secrets', '{}')) AS k (key, value)
WHERE r.install_id = sqlc.arg(install_id) AND r.live_release_id IS NOT NULL AND r.kind <> 'secrets'
ORDER BY r.kind, r.name, k.key;
