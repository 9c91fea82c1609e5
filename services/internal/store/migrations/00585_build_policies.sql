-- The rules that the build of a component is held against.

-- +goose Up

-- Those of the app's policies that look at the image of a build (pkg/policy.Rules), null for
-- none. They are part of the build digest.
ALTER TABLE component_revisions ADD COLUMN policies jsonb;
GRANT SELECT (policies) ON component_revisions TO berth_builder;
