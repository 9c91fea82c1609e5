-- What package store itself asks before a service starts.

-- name: SchemaVersion :one
-- The last migration that was applied.
SELECT berth.schema_version()::bigint;

-- name: OldestSchema :one
-- The oldest schema version whose executables still work with this database.
SELECT berth.oldest_schema()::bigint;
