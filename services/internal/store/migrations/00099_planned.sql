-- +goose Up

-- Superseded says one thing of a change: a newer one took its place. One whose
-- workflow only shows plans ends as planned; one that its workflow gives up, since
-- it was cancelled or cannot go on, is withdrawn.
ALTER TABLE changes DROP CONSTRAINT changes_state_check;
ALTER TABLE changes ADD CONSTRAINT changes_state_check CHECK (state IN (
    'preparing', 'proposed', 'approved', 'executing', 'applied', 'no_change', 'planned', 'denied', 'superseded', 'withdrawn',
    'stale', 'refused', 'failed', 'uncertain'));
