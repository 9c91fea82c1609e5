-- +goose Up

-- fleet_counts counts what the control plane looks after, of all orgs together,
-- for metrics: no row names an org, an install or a runner. States that nothing is
-- in count 0, so that a series does not end when its last one leaves. A runner is
-- offline after offline_seconds of silence; job.oldest is in seconds. Rehearsals are
-- counted as rehearsed where others are live, and not as unhealthy.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.fleet_counts(offline_seconds float8)
    RETURNS TABLE (name text, kind text, state text, value float8)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
    SELECT 'install.count', '', s.state, count(i.id)
    FROM unnest('{new,provisioning,live,rehearsed,deprovisioning,deprovisioned}'::text[]) s(state)
    LEFT JOIN installs i ON s.state = CASE WHEN i.state = 'live' AND i.rehearsal IS NOT NULL THEN 'rehearsed' ELSE i.state END
        AND i.forgotten_at IS NULL
    GROUP BY s.state
    UNION ALL
    SELECT 'resource.count', k.kind, s.state, count(r.id)
    FROM unnest('{stack,sandbox,component}'::text[]) k(kind)
    CROSS JOIN unnest('{absent,live,rehearsed,changing,failed,unknown,orphaned}'::text[]) s(state)
    LEFT JOIN (resources r JOIN installs i ON i.org_id = r.org_id AND i.id = r.install_id) ON r.kind = k.kind
        AND s.state = CASE WHEN r.state = 'live' AND i.rehearsal IS NOT NULL THEN 'rehearsed' ELSE r.state END
    GROUP BY k.kind, s.state
    UNION ALL
    SELECT 'resource.unhealthy', k.kind, '', count(r.id)
    FROM unnest('{stack,sandbox,component}'::text[]) k(kind)
    LEFT JOIN (resources r JOIN installs i ON i.org_id = r.org_id AND i.id = r.install_id AND i.rehearsal IS NULL)
        ON r.kind = k.kind AND r.health = 'unhealthy' AND r.state <> 'absent'
    GROUP BY k.kind
    UNION ALL
    SELECT 'runner.count', k.kind, s.state, count(r.id)
    FROM unnest('{install,build}'::text[]) k(kind)
    CROSS JOIN unnest('{pending,online,offline}'::text[]) s(state)
    LEFT JOIN runners r ON r.kind = k.kind AND r.state <> 'revoked' AND s.state = CASE
        WHEN r.state = 'pending' THEN 'pending'
        WHEN r.last_seen_at > now() - make_interval(secs => offline_seconds) THEN 'online'
        ELSE 'offline' END
    GROUP BY k.kind, s.state
    UNION ALL
    SELECT 'job.open', '', s.state, count(j.id)
    FROM unnest('{queued,leased}'::text[]) s(state)
    LEFT JOIN runner_jobs j ON j.state = s.state AND j.state IN ('queued', 'leased')
    GROUP BY s.state
    UNION ALL
    SELECT 'job.oldest', '', '', coalesce(extract(epoch FROM now() - min(queued_at)), 0)
    FROM runner_jobs WHERE runner_jobs.state = 'queued'
    UNION ALL
    SELECT 'workflow.open', '', s.state, count(w.id)
    FROM unnest('{queued,running,waiting}'::text[]) s(state)
    LEFT JOIN workflows w ON w.state = s.state AND w.state IN ('queued', 'running', 'waiting')
    GROUP BY s.state
    UNION ALL
    SELECT 'change.proposed', '', '', count(*) FROM changes WHERE changes.state = 'proposed'
$$;
-- +goose StatementEnd
SELECT berth.system_function('berth.fleet_counts(float8)', 'berth_ctl');
