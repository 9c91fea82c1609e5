-- +goose Up

-- Each look at a workflow reads its jobs and how its changes ended. Without these
-- indexes it reads through those of the whole org.
CREATE INDEX runner_jobs_of_workflow ON runner_jobs (org_id, workflow_id) WHERE workflow_id IS NOT NULL;
CREATE INDEX changes_of_workflow ON changes (org_id, workflow_id);
