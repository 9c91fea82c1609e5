-- +goose Up

-- Accepting a release is a change: the runner compares its scripts with those
-- that it accepted before, people decide. forget is the same for none at all.
ALTER TABLE changes DROP CONSTRAINT changes_kind_check;
ALTER TABLE changes ADD CONSTRAINT changes_kind_check
    CHECK (kind IN ('deploy', 'teardown', 'script', 'accept', 'forget', 'secret_sync', 'break_glass', 'runner_update'));

-- Whether an install has accepted a release is asked when it is looked at.
CREATE INDEX changes_accepted ON changes (org_id, install_id, id DESC) WHERE kind = 'accept' AND state IN ('applied', 'no_change');
