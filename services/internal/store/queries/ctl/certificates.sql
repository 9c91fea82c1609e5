-- Certificates that looks saw. All inside store.Tx of the org; what writes holds the row of
-- their install.

-- name: CertificatesOfOutcome :one
-- What the newest outcome of a check told of certificates; null when it did not look for
-- them. A probe of a component tells it by itself, one that an app wrote in its only step.
-- The clock of a runner may be ahead.
SELECT coalesce(CASE WHEN a.action LIKE 'component/%' THEN a.outputs->'certificates' ELSE jsonb_path_query_first(a.outputs, '$.*.certificates') END, 'null')::jsonb AS certificates,
       least(coalesce(a.finished_at, a.created_at), now())::timestamptz AS seen_at
FROM action_runs a
WHERE a.install_id = sqlc.arg(install_id) AND a.action = sqlc.arg(action) AND a.state IN ('succeeded', 'failed')
ORDER BY coalesce(a.scheduled_at, a.created_at) DESC LIMIT 1;

-- name: PutCertificate :exec
INSERT INTO certificates AS c (org_id, install_id, check_name, place, subject, fingerprint, not_before, not_after, seen_at)
VALUES (berth.current_org(), sqlc.arg(install_id), sqlc.arg(check_name), sqlc.arg(place), sqlc.arg(subject), sqlc.arg(fingerprint), sqlc.arg(not_before), sqlc.arg(not_after), sqlc.arg(seen_at))
ON CONFLICT (org_id, install_id, check_name, place) DO UPDATE SET subject = excluded.subject, fingerprint = excluded.fingerprint,
    not_before = excluded.not_before, not_after = excluded.not_after, seen_at = excluded.seen_at
WHERE c.fingerprint <> excluded.fingerprint OR c.seen_at < excluded.seen_at - interval '1 hour';

-- name: DropCertificates :exec
-- Forgets those of a check that are not among the places where there are some.
DELETE FROM certificates WHERE install_id = sqlc.arg(install_id) AND check_name = sqlc.arg(check_name) AND NOT place = ANY (sqlc.arg(places)::text[]);

-- name: CertificatesOfInstall :many
-- Those that were seen since a time, by checks that there are.
SELECT c.* FROM certificates c JOIN checks k ON k.org_id = c.org_id AND k.install_id = c.install_id AND k.name = c.check_name
WHERE c.install_id = sqlc.arg(install_id) AND c.seen_at > sqlc.arg(since)::timestamptz ORDER BY c.check_name, c.place;
