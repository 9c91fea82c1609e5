-- How healthy an install is to be.

-- +goose Up

-- The share of time in percent, null for an install without an objective.
ALTER TABLE installs ADD COLUMN health_objective float8 CHECK (health_objective BETWEEN 50 AND 99.999);
