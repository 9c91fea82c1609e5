-- Releases: a config and the exact build of each component.

-- name: ShowReleases :many
-- Releases with the names around them, newest first; a filter that is empty or
-- 0 lets all pass.
SELECT sqlc.embed(r), a.name AS app_name, c.number AS config_number, c.created_by AS synced_by, c.created_at AS synced_at,
       c.message, c.git_commit, c.git_author, c.git_modified,
       EXISTS (SELECT FROM release_statements s WHERE s.org_id = r.org_id AND s.release_id = r.id) AS signed,
       EXISTS (SELECT FROM release_revocations v WHERE v.org_id = r.org_id AND v.release_id = r.id) AS revoked
FROM releases r
JOIN apps a ON a.org_id = r.org_id AND a.id = r.app_id
JOIN configs c ON c.org_id = r.org_id AND c.id = r.config_id
WHERE (sqlc.arg(id)::text = '' OR r.id = sqlc.arg(id))
  AND (sqlc.arg(app_id)::text = '' OR r.app_id = sqlc.arg(app_id))
  AND (sqlc.arg(app_name)::text = '' OR (a.name = sqlc.arg(app_name) AND a.deleted_at IS NULL))
  AND (sqlc.arg(number)::int = 0 OR r.number = sqlc.arg(number))
  AND (sqlc.arg(before)::int = 0 OR r.number < sqlc.arg(before))
ORDER BY r.number DESC LIMIT sqlc.arg(most);

-- name: ShowReleaseItems :many
SELECT i.build_id, i.artifact_repository, i.artifact_digest, c.kind, c.name, v.type, b.artifact_size_bytes
FROM release_items i
JOIN components c ON c.org_id = i.org_id AND c.id = i.component_id
JOIN component_revisions v ON v.org_id = i.org_id AND v.id = i.revision_id
JOIN builds b ON b.org_id = i.org_id AND b.id = i.build_id
WHERE i.release_id = sqlc.arg(release_id)
ORDER BY c.kind DESC, c.name;

-- name: ReleaseItemDigests :many
-- What each component of a release was built and is deployed from.
SELECT c.kind, c.name, v.build_digest, v.deploy_digest, b.source, i.artifact_digest
FROM release_items i
JOIN components c ON c.org_id = i.org_id AND c.id = i.component_id
JOIN component_revisions v ON v.org_id = i.org_id AND v.id = i.revision_id
JOIN builds b ON b.org_id = i.org_id AND b.id = i.build_id
WHERE i.release_id = sqlc.arg(release_id)
ORDER BY c.kind DESC, c.name;

-- name: FindReleaseOfApp :one
-- A release of an app by id or number. With both empty the newest release of
-- the newest config that has one: a slow older config that was finished later
-- does not come before it.
SELECT r.* FROM releases r
JOIN configs c ON c.org_id = r.org_id AND c.id = r.config_id
WHERE r.app_id = sqlc.arg(app_id)
  AND (sqlc.arg(id)::text = '' OR r.id = sqlc.arg(id))
  AND (sqlc.arg(number)::int = 0 OR r.number = sqlc.arg(number))
ORDER BY c.number DESC, r.number DESC LIMIT 1;

-- name: StatementsOfRelease :many
-- What the vendor signed of a release, the newest first.
SELECT * FROM release_statements WHERE release_id = sqlc.arg(release_id) ORDER BY added_at DESC, digest LIMIT 16;

-- name: AddReleaseStatement :execrows
-- Once for the same words.
INSERT INTO release_statements (org_id, release_id, digest, key_id, envelope, expires_at, added_by)
VALUES (berth.current_org(), sqlc.arg(release_id), sqlc.arg(digest), sqlc.arg(key_id), sqlc.arg(envelope), sqlc.arg(expires_at), sqlc.arg(added_by))
ON CONFLICT (org_id, release_id, digest) DO NOTHING;

-- name: CountReleaseStatements :one
SELECT count(*)::int FROM release_statements WHERE release_id = sqlc.arg(release_id);

-- name: RevocationsOfRelease :many
-- What the vendor signed against a release, the newest first.
SELECT * FROM release_revocations WHERE release_id = sqlc.arg(release_id) ORDER BY added_at DESC, digest LIMIT 16;

-- name: RevocationsOfApp :many
-- The newest revocations of the app's releases, as they were signed.
SELECT v.envelope FROM release_revocations v
JOIN releases r ON r.org_id = v.org_id AND r.id = v.release_id
WHERE r.app_id = sqlc.arg(app_id)
ORDER BY v.added_at DESC, v.digest LIMIT sqlc.arg(most)::int;

-- name: AddReleaseRevocation :execrows
-- Once for the same words.
INSERT INTO release_revocations (org_id, release_id, digest, key_id, reason, envelope, issued_at, added_by)
VALUES (berth.current_org(), sqlc.arg(release_id), sqlc.arg(digest), sqlc.arg(key_id), sqlc.arg(reason), sqlc.arg(envelope), sqlc.arg(issued_at), sqlc.arg(added_by))
ON CONFLICT (org_id, release_id, digest) DO NOTHING;

-- name: CountReleaseRevocations :one
SELECT count(*)::int FROM release_revocations WHERE release_id = sqlc.arg(release_id);
