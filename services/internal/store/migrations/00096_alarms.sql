-- +goose Up

-- An alarm is open until somebody has looked at it and says why it is settled.
-- The same thing happening again is another alarm.
ALTER TABLE alarms ADD COLUMN acknowledged_at timestamptz, ADD COLUMN acknowledged_by text, ADD COLUMN acknowledgement text;
ALTER TABLE alarms ADD CONSTRAINT alarms_acknowledged CHECK (num_nonnulls(acknowledged_at, acknowledged_by, acknowledgement) IN (0, 3));
ALTER TABLE alarms DROP CONSTRAINT alarms_org_id_runner_id_kind_subject_key;
CREATE UNIQUE INDEX alarms_open ON alarms (org_id, runner_id, kind, subject) WHERE acknowledged_at IS NULL;
GRANT UPDATE (acknowledged_at, acknowledged_by, acknowledgement) ON alarms TO berth_ctl;
