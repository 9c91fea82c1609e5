-- +goose Up

-- A session has an opening: a random id that the agent stored before it asked for
-- the session. The next request names it. One that does not comes from another
-- process with the same key: then the runner is disputed, until another machine
-- takes its place. session_opening is NULL until an agent named one, which those
-- of before do not, and again for each new machine.
ALTER TABLE runners
    ADD COLUMN session_opening text,
    ADD COLUMN disputed_since timestamptz,
    ADD COLUMN disputed_reason text,
    ADD CONSTRAINT runners_disputed CHECK ((disputed_since IS NULL) = (disputed_reason IS NULL));
-- used_at: the first request with the session's token. An agent stores the opening
-- as its own before that, so nobody honest asks for the same session afterwards.
ALTER TABLE runner_sessions
    ADD COLUMN opening text,
    ADD COLUMN used_at timestamptz;
CREATE UNIQUE INDEX runner_sessions_opening ON runner_sessions (org_id, runner_id, opening) WHERE opening IS NOT NULL;

GRANT SELECT (session_opening, disputed_since, disputed_reason), UPDATE (session_opening, disputed_since, disputed_reason) ON runners TO berth_runner;
GRANT SELECT (opening, used_at), INSERT (opening), UPDATE (epoch, token_hash, version, used_at) ON runner_sessions TO berth_runner;
