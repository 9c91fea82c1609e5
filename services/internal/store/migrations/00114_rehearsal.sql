-- +goose Up

-- rehearsal makes an install a rehearsal of an app that needs a cloud: its platform
-- and the outputs that people gave or recorded (package rehearsal). NULL for all
-- others. It is written once: neither becomes the other.
ALTER TABLE installs ADD COLUMN rehearsal jsonb CHECK (jsonb_typeof(rehearsal) = 'object');

-- +goose StatementBegin
CREATE FUNCTION berth.keep_rehearsal() RETURNS trigger LANGUAGE plpgsql SET search_path = berth, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'whether install % is a rehearsal is decided when it is made', OLD.id USING ERRCODE = 'insufficient_privilege';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER keep_rehearsal BEFORE UPDATE OF rehearsal ON installs
    FOR EACH ROW WHEN (OLD.rehearsal IS DISTINCT FROM NEW.rehearsal) EXECUTE FUNCTION berth.keep_rehearsal();
