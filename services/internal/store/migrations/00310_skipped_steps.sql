-- +goose Up

-- Who skipped a step that had failed, or that needed one; null for one that was skipped
-- because nobody wanted it any more.
ALTER TABLE steps ADD COLUMN skipped_by text;
