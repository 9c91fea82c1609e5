-- +goose Up

-- The copies of an install's secrets in its cluster are a resource of it, of which there is
-- one: it has a fence and a lock like the others, and its outputs say which copies there are.
ALTER TABLE resources DROP CONSTRAINT resources_kind_check;
ALTER TABLE resources ADD CONSTRAINT resources_kind_check CHECK (kind IN ('stack', 'sandbox', 'component', 'secrets'));
