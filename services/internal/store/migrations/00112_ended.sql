-- +goose Up

-- A change that somebody denied, or that nobody decided on in time, did not fail.
-- denied_by is who denied it, NULL when it was time. A failed workflow in which
-- nothing else went wrong says in ended how it came to its end; a retry takes that
-- back.
ALTER TABLE changes ADD COLUMN denied_by text;
ALTER TABLE workflows
    ADD COLUMN ended    text CHECK (ended IN ('denied', 'expired')),
    ADD COLUMN ended_by text,
    ADD CONSTRAINT workflows_ended CHECK (ended IS NULL OR state = 'failed'),
    ADD CONSTRAINT workflows_ended_by CHECK ((ended_by IS NOT NULL) = (ended IS NOT DISTINCT FROM 'denied'));

UPDATE changes c SET denied_by = d.actor FROM decisions d WHERE d.change_id = c.id AND d.answer = 'deny' AND c.state = 'denied';
UPDATE workflows w SET ended = CASE WHEN x.denied_by IS NULL THEN 'expired' ELSE 'denied' END, ended_by = x.denied_by
FROM (
    SELECT s.workflow_id, (array_agg(c.denied_by ORDER BY c.denied_by IS NULL, s.idx))[1] AS denied_by
    FROM steps s LEFT JOIN changes c ON c.id = s.change_id WHERE s.state = 'failed' GROUP BY s.workflow_id
    HAVING bool_and(coalesce(c.state, '') IN ('denied', 'superseded')) AND bool_or(c.state = 'denied')
) x
WHERE x.workflow_id = w.id AND w.state = 'failed';
