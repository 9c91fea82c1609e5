-- +goose Up

-- What the applies of a resource left behind is asked when a workflow begins and
-- when an apply has ended.
CREATE INDEX changes_ordered ON changes (org_id, resource_id) WHERE apply_job_id IS NOT NULL;
