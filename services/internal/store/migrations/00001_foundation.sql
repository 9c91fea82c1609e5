-- What every later migration stands on: the schema, the org of the present
-- transaction, and the two helpers that turn a table into a tenant table and a
-- function into one that works across orgs.
--
-- Roles are made outside migrations (store.EnsureRoles). Migrations run as
-- berth_owner with search_path = berth. berth_owner is a member of berth_sys, so
-- that a migration sees the rows of all orgs: a backfill that silently found
-- none would be worse. No service can become either of them.

-- +goose Up

CREATE SCHEMA IF NOT EXISTS berth;

-- Functions are callable by nobody until a migration grants them.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

REVOKE ALL ON SCHEMA berth FROM PUBLIC;
GRANT USAGE ON SCHEMA berth TO berth_ctl, berth_runner, berth_builder, berth_log;
-- CREATE is what Postgres asks of the new owner of a function.
GRANT USAGE, CREATE ON SCHEMA berth TO berth_sys;

-- The last migration that was applied; a service compares it with what it was
-- built for before it starts.
GRANT SELECT ON schema_versions TO berth_ctl, berth_runner, berth_builder, berth_log;
-- +goose StatementBegin
CREATE FUNCTION berth.schema_version() RETURNS bigint
    LANGUAGE sql STABLE SET search_path = berth, pg_temp
AS $$
    SELECT coalesce(max(version_id), 0)::bigint FROM schema_versions WHERE is_applied
$$;
-- +goose StatementEnd
GRANT EXECUTE ON FUNCTION berth.schema_version() TO berth_ctl, berth_runner, berth_builder, berth_log;

-- The org of this transaction, set by store.Tx; NULL outside of one, so that no
-- row matches.
CREATE FUNCTION berth.current_org() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('berth.org', true), '');
GRANT EXECUTE ON FUNCTION berth.current_org() TO berth_ctl, berth_runner, berth_builder, berth_log, berth_sys;

-- tenant_table puts the wall around a table with a column org_id: rows of the
-- present org only, for every service; all rows for berth_sys, which owns the
-- functions that work across orgs. Grants are written beside the table. On a partitioned
-- table it covers what is reached through the parent; grant nothing on
-- partitions.
-- +goose StatementBegin
CREATE FUNCTION berth.tenant_table(tenant_table regclass) RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', tenant_table);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', tenant_table);
    -- The subselect makes Postgres ask for the org once per statement.
    EXECUTE format('CREATE POLICY tenant ON %s
                    USING (org_id = (SELECT berth.current_org()))
                    WITH CHECK (org_id = (SELECT berth.current_org()))', tenant_table);
    EXECUTE format('CREATE POLICY system ON %s TO berth_sys USING (true) WITH CHECK (true)', tenant_table);
END
$$;
-- +goose StatementEnd

-- system_function hands a SECURITY DEFINER function to berth_sys, which sees
-- every org, and lets only the named roles call it. The function must pin its
-- search_path, else its caller could choose which tables it means.
-- +goose StatementBegin
CREATE FUNCTION berth.system_function(fn regprocedure, VARIADIC callers name[]) RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    caller name;
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_proc p, unnest(p.proconfig) AS setting
        WHERE p.oid = fn AND p.prosecdef AND setting LIKE 'search_path=%'
    ) THEN
        RAISE EXCEPTION '% must be SECURITY DEFINER and SET search_path', fn;
    END IF;
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', fn);
    EXECUTE format('ALTER FUNCTION %s OWNER TO berth_sys', fn);
    FOREACH caller IN ARRAY callers LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', fn, caller);
    END LOOP;
END
$$;
-- +goose StatementEnd
