-- Variables of apps: texts of the vendor's that templates of every install read.

-- +goose Up

-- A variable may be read (value), or is sensitive: then it is sealed to the org's
-- key, and no answer shows it. version is what apps.variables_version was when it
-- was set.
CREATE TABLE app_variables (
    org_id     text NOT NULL REFERENCES orgs,
    app_id     text NOT NULL,
    name       text NOT NULL CHECK (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$'),
    value      text,
    sealed     bytea,
    version    int NOT NULL,
    updated_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, app_id, name),
    FOREIGN KEY (org_id, app_id) REFERENCES apps (org_id, id),
    CONSTRAINT app_variables_value CHECK (num_nonnulls(value, sealed) = 1)
);

SELECT berth.tenant_table('app_variables');
GRANT SELECT, INSERT, UPDATE, DELETE ON app_variables TO berth_ctl;

-- Counts the changes of an app's variables. A state tree says which it was made of,
-- and the key that its sensitive values are sealed to, because sealed values
-- differ each time that they are sealed.
ALTER TABLE apps ADD COLUMN variables_version int NOT NULL DEFAULT 0;
ALTER TABLE state_versions ADD COLUMN variables_version int NOT NULL DEFAULT 0;
ALTER TABLE state_versions ADD COLUMN seal_recipient text;
