-- +goose Up

-- Which build counts for an item of a config is asked for each item, of each
-- sync and of each look at a config.
CREATE INDEX builds_of_digest ON builds (component_id, build_digest, id DESC);

-- No statement looks inside: the text is checked and kept, and not taken apart.
ALTER TABLE configs ALTER COLUMN body TYPE json USING body::json;
