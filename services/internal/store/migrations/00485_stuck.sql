-- What the sweep of ctl-api looks at: instead of locking every open workflow for a
-- moment, one query over all orgs finds those whose rows do not show what they wait for.

-- +goose Up
GRANT SELECT (org_id, id, removed_at) ON freezes TO berth_sys;
GRANT SELECT (paused_at) ON installs TO berth_sys;
GRANT SELECT (org_id, install_id, needed, present) ON install_secrets TO berth_sys;
GRANT SELECT (org_id, id, finished_at) ON bulk_operations TO berth_sys;

-- stuck_workflows lists the open workflows that may have lost a wake-up. What it leaves out
-- waits for sure, by its rows: each of its steps at work has a job at the runner, or waits for
-- something that has not happened, with a deadline ahead, and no other step can begin. One in
-- the list may be all right: the engine decides, under its lock. A reason to wait that is not
-- named here is in the list.
-- +goose StatementBegin
CREATE FUNCTION berth.stuck_workflows() RETURNS text[]
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT coalesce(array_agg(w.id ORDER BY w.id), '{}')
    FROM workflows w JOIN installs i ON i.org_id = w.org_id AND i.id = w.install_id
    CROSS JOIN LATERAL (
        SELECT bool_or(s.state IN ('running', 'waiting')) AS at_work, bool_or(s.state IN ('failed', 'cancelled')) AS failed,
               array_agg(s.name) FILTER (WHERE s.state IN ('succeeded', 'skipped')) AS done
        FROM steps s WHERE s.org_id = w.org_id AND s.workflow_id = w.id
    ) t
    WHERE w.state IN ('queued', 'running', 'waiting') AND (
        w.state = 'queued' OR w.cancel_requested_at IS NOT NULL OR t.failed OR t.at_work IS NOT TRUE
        OR EXISTS (SELECT FROM steps p WHERE p.org_id = w.org_id AND p.workflow_id = w.id AND p.state = 'pending' AND p.needs <@ coalesce(t.done, '{}'))
        OR EXISTS (
            SELECT FROM steps s WHERE s.org_id = w.org_id AND s.workflow_id = w.id AND s.state IN ('running', 'waiting')
              AND NOT EXISTS (SELECT FROM runner_jobs j WHERE j.org_id = s.org_id AND j.workflow_id = s.workflow_id AND j.step_id = s.id AND j.state IN ('queued', 'leased'))
              AND NOT (s.state = 'waiting' AND s.wait_deadline > now() AND (s.wait_retry_at IS NULL OR s.wait_retry_at > now()) AND CASE s.wait_reason
                WHEN 'decision' THEN NOT (w.approve_all OR i.approval_option = 'approve_all') AND EXISTS (
                    SELECT FROM changes c WHERE c.org_id = s.org_id AND c.id = s.change_id AND c.state = 'proposed' AND c.wait_deadline = s.wait_deadline
                      AND c.approved_effect_digest IS DISTINCT FROM c.effect_digest)
                WHEN 'lock' THEN EXISTS (
                    SELECT FROM changes c WHERE c.org_id = s.org_id AND c.id = s.change_id AND c.state = 'approved') AND EXISTS (
                    SELECT FROM changes h WHERE h.org_id = s.org_id AND h.id = s.wait_on AND h.state IN ('approved', 'executing'))
                WHEN 'runner' THEN NOT EXISTS (
                    SELECT FROM runners r WHERE r.org_id = s.org_id AND r.install_id = s.install_id AND r.state = 'active' AND r.public_key IS NOT NULL)
                WHEN 'stack' THEN coalesce((
                    SELECT k.state FROM stack_versions k WHERE k.org_id = s.org_id AND k.install_id = s.install_id ORDER BY k.version DESC LIMIT 1), '') <> 'active'
                WHEN 'freeze' THEN EXISTS (
                    SELECT FROM freezes f WHERE f.org_id = s.org_id AND f.id = s.wait_on AND f.removed_at IS NULL)
                WHEN 'paused_by_vendor' THEN i.paused_at IS NOT NULL
                WHEN 'secret_missing' THEN EXISTS (
                    SELECT FROM install_secrets x WHERE x.org_id = s.org_id AND x.install_id = s.install_id AND x.needed AND NOT x.present)
                WHEN 'release' THEN EXISTS (
                    SELECT FROM steps a LEFT JOIN changes ac ON ac.org_id = a.org_id AND ac.id = a.change_id
                    WHERE a.org_id = s.org_id AND a.workflow_id = s.workflow_id AND a.kind = 'accept' AND a.state IN ('pending', 'running', 'waiting')
                      AND s.wait_on = coalesce(a.change_id, a.id) AND (ac.wait_deadline IS NULL OR ac.wait_deadline = s.wait_deadline))
                ELSE false END)))
$$;

-- unfinished_bulks lists the bulk operations of all orgs that are not finished.
CREATE FUNCTION berth.unfinished_bulks() RETURNS TABLE (org_id text, id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT b.org_id, b.id FROM bulk_operations b WHERE b.finished_at IS NULL ORDER BY b.id
$$;

-- installs_unsigned lists the installs whose runner is there and whose signed settings expire
-- within so many seconds.
CREATE FUNCTION berth.installs_unsigned(within_seconds float8) RETURNS TABLE (org_id text, id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT i.org_id, i.id FROM installs i
    WHERE i.forgotten_at IS NULL
      AND EXISTS (SELECT FROM runners r WHERE r.org_id = i.org_id AND r.install_id = i.id AND r.state = 'active' AND r.seal_recipient IS NOT NULL)
      AND (SELECT v.expires_at FROM settings_versions v WHERE v.org_id = i.org_id AND v.install_id = i.id ORDER BY v.version DESC LIMIT 1) < now() + make_interval(secs => within_seconds)
    ORDER BY i.id
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.stuck_workflows()', 'berth_ctl');
SELECT berth.system_function('berth.unfinished_bulks()', 'berth_ctl');
SELECT berth.system_function('berth.installs_unsigned(float8)', 'berth_ctl');
