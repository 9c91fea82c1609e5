-- Sealed bytes name their purpose.

-- +goose Up

-- seal_form is the form in which the org's rows are sealed at rest: 1 until
-- ctl-api has sealed them again with their purpose, which it does once at its
-- start. The first form opens there and nowhere else.
ALTER TABLE orgs ADD COLUMN seal_form int NOT NULL DEFAULT 1 CHECK (seal_form IN (1, 2));
ALTER TABLE orgs ALTER COLUMN seal_form SET DEFAULT 2;

-- A version of inputs never changes; how it is sealed may.
GRANT UPDATE (sealed) ON install_inputs TO berth_ctl;
-- What else ctl-api seals again.
GRANT UPDATE (seal_form) ON orgs TO berth_ctl;
GRANT UPDATE (private_sealed) ON keys TO berth_ctl;
