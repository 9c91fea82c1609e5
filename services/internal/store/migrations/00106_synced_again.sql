-- +goose Up

-- An older folder that is synced again makes another config and another release,
-- with the digests of those before: what was synced last is the newest.
DROP INDEX configs_digest;
DROP INDEX releases_digest;
CREATE INDEX releases_of_config ON releases (org_id, config_id, number);
