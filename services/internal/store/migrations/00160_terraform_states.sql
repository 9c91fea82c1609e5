-- +goose Up

-- ctl-api shows people what is known of Terraform states without opening them, and who
-- holds their locks. The bytes stay out of its reach.
GRANT SELECT (id, org_id, resource_id, serial, lineage, kind, digest, summary, job_id, attempt, reason, created_at) ON tf_states TO berth_ctl;
GRANT SELECT (lock_id, info, job_id, attempt, locked_at) ON tf_locks TO berth_ctl;
