-- +goose Up

-- org_of names the org that an id belongs to, and nothing else. NULL when there is no
-- such id. The first three letters of an id name its kind: a "_" follows them, but not
-- in ids that apps put into names (orgs, apps, components, installs).
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.org_of(object_id text) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = berth, pg_temp AS $$
DECLARE
    found text;
BEGIN
    CASE left(object_id, 3)
        WHEN 'org' THEN SELECT org_id INTO found FROM orgs WHERE org_id = object_id;
        WHEN 'wfl' THEN SELECT org_id INTO found FROM workflows WHERE id = object_id;
        WHEN 'stp' THEN SELECT org_id INTO found FROM steps WHERE id = object_id;
        WHEN 'chg' THEN SELECT org_id INTO found FROM changes WHERE id = object_id;
        WHEN 'bld' THEN SELECT org_id INTO found FROM builds WHERE id = object_id;
        WHEN 'ins' THEN SELECT org_id INTO found FROM installs WHERE id = object_id;
        WHEN 'rnr' THEN SELECT org_id INTO found FROM runners WHERE id = object_id;
        WHEN 'job' THEN SELECT org_id INTO found FROM runner_jobs WHERE id = object_id;
        WHEN 'ses' THEN SELECT org_id INTO found FROM runner_sessions WHERE id = object_id;
        WHEN 'stk' THEN SELECT org_id INTO found FROM stack_versions WHERE id = object_id;
        ELSE found := NULL;
    END CASE;
    RETURN found;
END $$;
-- +goose StatementEnd
