-- How long an install has to be healthy before a deploy is done.

-- +goose Up

-- In seconds, null where only the app asks for it.
ALTER TABLE installs ADD COLUMN health_hold_seconds int CHECK (health_hold_seconds BETWEEN 1 AND 86400);
