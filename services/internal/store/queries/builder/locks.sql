-- name: BuilderLock :exec
-- Waits until nobody else has the lock of this name, and has it until the
-- transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('berth.builder.' || sqlc.arg(name)::text, 0));
