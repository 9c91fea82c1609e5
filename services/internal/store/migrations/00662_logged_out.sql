-- Logging out is no revocation: what was approved in a browser stands when its owner logs
-- out, and falls when somebody revokes the session.

-- +goose Up

ALTER TABLE tokens ADD COLUMN ended_at timestamptz;
ALTER TABLE tokens ADD CONSTRAINT tokens_sessions_are_logged_out CHECK (kind = 'session' OR ended_at IS NULL);
GRANT UPDATE (ended_at) ON tokens TO berth_ctl;
GRANT SELECT (ended_at) ON tokens TO berth_log;
