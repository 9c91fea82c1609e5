-- +goose Up

-- Directories of repositories that steps of actions run in are built and released
-- like components. An install has no resource of them.
ALTER TABLE components DROP CONSTRAINT components_kind_check;
ALTER TABLE components ADD CONSTRAINT components_kind_check CHECK (kind IN ('sandbox', 'component', 'scripts'));
