-- +goose Up

-- Where a synced folder comes from, as the person who synced it says: a message,
-- and the commit, with its author, when the folder is in a git repository. Modified:
-- the folder had changes that are in no commit.
ALTER TABLE configs
    ADD COLUMN message      text    NOT NULL DEFAULT '' CHECK (length(message) <= 2000),
    ADD COLUMN git_commit   text    NOT NULL DEFAULT '' CHECK (length(git_commit) <= 64),
    ADD COLUMN git_author   text    NOT NULL DEFAULT '' CHECK (length(git_author) <= 200),
    ADD COLUMN git_modified boolean NOT NULL DEFAULT false;
