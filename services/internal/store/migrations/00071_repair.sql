-- Brings databases of development versions to what a fresh one is. Until here
-- some migrations were edited after databases had been made with them; what was
-- added then is added here, and is no change where it is there.

-- +goose Up

GRANT DELETE ON checks TO berth_ctl;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION berth.runner_retires_only_its_kind() RETURNS trigger
    LANGUAGE plpgsql SET search_path = berth, pg_temp AS $$
BEGIN
    IF OLD.purpose NOT IN ('runner', 'seal') THEN
        RAISE EXCEPTION 'runner-api may not retire a key of purpose %', OLD.purpose USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER keys_runner_retires BEFORE UPDATE ON keys
    FOR EACH ROW WHEN (current_user = 'berth_runner') EXECUTE FUNCTION berth.runner_retires_only_its_kind();
