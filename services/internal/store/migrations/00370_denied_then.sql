-- What a person wants when they deny a change: the step fails (null), it is skipped
-- and what needs it goes on, or it is skipped with all that needs it. And a third
-- answer to a proposal: plan it again.

-- +goose Up
ALTER TABLE changes ADD COLUMN denied_then text CHECK (denied_then IN ('skip', 'skip_dependents'));
ALTER TABLE decisions DROP CONSTRAINT decisions_answer_check;
ALTER TABLE decisions ADD CONSTRAINT decisions_answer_check CHECK (answer IN ('approve', 'deny', 'plan_again'));
