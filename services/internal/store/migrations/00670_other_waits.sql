-- +goose Up
-- What waits for something else than before is told too: a step that was approved and is
-- held by a pause, a workflow that goes from one decision to the next.
CREATE OR REPLACE TRIGGER happened AFTER UPDATE OF state, wait_reason ON workflows
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state OR (NEW.state = 'waiting' AND OLD.wait_reason IS DISTINCT FROM NEW.wait_reason))
    EXECUTE FUNCTION berth.workflow_happened();
CREATE OR REPLACE TRIGGER happened AFTER UPDATE OF state, wait_reason ON steps
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state OR (NEW.state = 'waiting' AND OLD.wait_reason IS DISTINCT FROM NEW.wait_reason))
    EXECUTE FUNCTION berth.step_happened();
