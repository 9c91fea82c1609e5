-- Two orgs for TestStolenPasswords. ORG and X are replaced for each.
INSERT INTO orgs (org_id, name) VALUES ('ORG', 'X');
INSERT INTO customers (id, org_id, name) VALUES ('cus_X', 'ORG', 'acme');
INSERT INTO accounts (id, org_id, kind, name, email) VALUES ('acc_X', 'ORG', 'user', 'ann', 'ann@example.com');
INSERT INTO tokens (id, org_id, account_id, name, prefix, hash) VALUES ('tok_X', 'ORG', 'acc_X', 'laptop', 'bt_', 'hash_X');
INSERT INTO grants (id, org_id, account_id, role) VALUES ('gra_X', 'ORG', 'acc_X', 'viewer');
INSERT INTO apps (id, org_id, name) VALUES ('app_X', 'ORG', 'shop');
INSERT INTO app_variables (org_id, app_id, name, sealed, version, updated_by) VALUES ('ORG', 'app_X', 'secret', 'x', 1, 'ann');
INSERT INTO blobs (org_id, digest, size_bytes, body) VALUES ('ORG', 'sha256:' || repeat('0', 64), 1, 'x');
INSERT INTO configs (id, org_id, app_id, number, digest, bundle_digest, body, created_by) VALUES ('cfg_X', 'ORG', 'app_X', 1, 'd', 'sha256:' || repeat('0', 64), '{}', 'ann');
INSERT INTO components (id, org_id, app_id, kind, name) VALUES ('cmp_X', 'ORG', 'app_X', 'component', 'web');
INSERT INTO component_revisions (id, org_id, component_id, type, build_digest, deploy_digest, spec) VALUES ('rev_X', 'ORG', 'cmp_X', 'terraform', 'b', 'd', '{}');
INSERT INTO builds (id, org_id, app_id, component_id, revision_id, build_digest, source, requested_by) VALUES
    ('bld_X', 'ORG', 'app_X', 'cmp_X', 'rev_X', 'b', '{}', 'ann');
INSERT INTO config_items (org_id, config_id, component_id, revision_id, build_id) VALUES ('ORG', 'cfg_X', 'cmp_X', 'rev_X', 'bld_X');
INSERT INTO releases (id, org_id, app_id, number, config_id, made_by, digest) VALUES ('rel_X', 'ORG', 'app_X', 1, 'cfg_X', 'sync', 'd');
INSERT INTO release_items (org_id, release_id, component_id, revision_id, build_id, artifact_repository, artifact_digest)
    VALUES ('ORG', 'rel_X', 'cmp_X', 'rev_X', 'bld_X', 'r', 'sha256:1');
INSERT INTO installs (id, org_id, customer_id, app_id, name, stack_kind, created_by) VALUES
    ('ins_X', 'ORG', 'cus_X', 'app_X', 'prod', 'local', 'ann'), ('ins_X_new', 'ORG', 'cus_X', 'app_X', 'new', 'local', 'ann');
INSERT INTO install_inputs (org_id, install_id, version, sealed, created_by) VALUES ('ORG', 'ins_X', 1, 'x', 'ann');
INSERT INTO stack_versions (id, org_id, install_id, version, kind, phone_home_hash, expires_at) VALUES ('stk_X', 'ORG', 'ins_X', 1, 'local', 'home_X', now() + interval '1 day');
INSERT INTO state_versions (org_id, install_id, version, tree, inputs_version, cause) VALUES ('ORG', 'ins_X', 1, '{}', 1, 'x');
INSERT INTO settings_versions (org_id, install_id, version, digest, envelope, expires_at) VALUES ('ORG', 'ins_X', 1, 'd', '{}', now() + interval '1 day');
INSERT INTO resources (id, org_id, install_id, kind, component_id, name, fence) VALUES ('rsc_X', 'ORG', 'ins_X', 'component', 'cmp_X', 'web', 7);
INSERT INTO workflows (id, org_id, install_id, number, kind, inputs_version, created_by) VALUES ('wfl_X', 'ORG', 'ins_X', 1, 'deploy', 1, 'ann');
INSERT INTO steps (id, org_id, workflow_id, install_id, idx, name, kind, reason) VALUES ('stp_X', 'ORG', 'wfl_X', 'ins_X', 1, 's', 'k', 'r');
INSERT INTO changes (id, org_id, install_id, workflow_id, step_id, kind, state, inputs_version, state_version, effect_digest, wait_reason, wait_on, wait_deadline)
    VALUES ('chg_X', 'ORG', 'ins_X', 'wfl_X', 'stp_X', 'deploy', 'proposed', 1, 1, 'd', 'decision', 'approver', now() + interval '1 day');
INSERT INTO decisions (id, org_id, change_id, answer, effect_digest, actor) VALUES ('dec_X', 'ORG', 'chg_X', 'deny', 'd', 'ann');
INSERT INTO runners (id, org_id, install_id, kind, name, state, public_key, seal_recipient, epoch) VALUES
    ('rnr_X', 'ORG', 'ins_X', 'install', 'prod', 'active', 'their key', 'their recipient', 3),
    ('rnr_X_new', 'ORG', 'ins_X_new', 'install', 'new', 'pending', NULL, NULL, 0),
    ('rnr_X_gone', 'ORG', 'ins_X', 'install', 'gone', 'revoked', 'gone key', 'gone recipient', 1),
    ('rnr_X_build', 'ORG', NULL, 'build', 'build', 'active', 'build key', 'build recipient', 1);
INSERT INTO enrolments (id, org_id, runner_id, secret_hash, state, bound_key, created_by, expires_at) VALUES
    ('enr_X', 'ORG', 'rnr_X', 'secret_X', 'used', 'their key', 'ann', now() + interval '1 day'),
    ('enr_X_new', 'ORG', 'rnr_X_new', 'secret_X_new', 'open', NULL, 'ann', now() + interval '1 day');
INSERT INTO runner_sessions (id, org_id, runner_id, epoch, token_hash) VALUES ('ses_X', 'ORG', 'rnr_X', 3, 'session_X');
INSERT INTO keys (id, org_id, install_id, purpose, algorithm, key_id, public_key, private_sealed, retired_at) VALUES
    ('key_X_dispatch', 'ORG', NULL, 'dispatch', 'ed25519', 'dispatch', 'dispatch key', 'sealed', NULL),
    ('key_X_runner', 'ORG', 'ins_X', 'runner', 'ed25519', 'runner', 'their key', NULL, NULL),
    ('key_X_old', 'ORG', 'ins_X', 'runner', 'ed25519', 'old', 'old key', NULL, now());
INSERT INTO runner_jobs (id, org_id, runner_id, install_id, build_id, kind, operation, mutates, state, spec, capsule, fence, attempt, timeout_seconds) VALUES
    ('job_X', 'ORG', 'rnr_X', 'ins_X', NULL, 'terraform', 'apply', true, 'leased', '{}', '{}', 7, 1, 60),
    ('job_X_done', 'ORG', 'rnr_X', 'ins_X', NULL, 'terraform', 'apply', true, 'succeeded', '{}', '{}', 6, 1, 60),
    ('job_X_build', 'ORG', 'rnr_X_build', NULL, 'bld_X', 'terraform', 'build', false, 'queued', '{}', NULL, NULL, 0, 60);
INSERT INTO leases (id, org_id, job_id, runner_id, session_id, attempt, claim_id, stream_id, expires_at)
    VALUES ('lse_X', 'ORG', 'job_X', 'rnr_X', 'ses_X', 1, 'c', 'str_X', now() + interval '1 minute');
INSERT INTO tf_states (id, org_id, resource_id, serial, lineage, body, digest, job_id, attempt, fence) VALUES ('tfs_X', 'ORG', 'rsc_X', 1, 'l', 'sealed', 'd', 'job_X', 1, 7);
INSERT INTO tf_locks (org_id, resource_id, lock_id, info, job_id, attempt, fence) VALUES ('ORG', 'rsc_X', 'l', '{}', 'job_X', 1, 7);
INSERT INTO registry_tokens (hash, org_id, runner_id, session_id, actions, expires_at) VALUES ('registry_X', 'ORG', 'rnr_X', 'ses_X', '{pull}', now() + interval '1 hour');
INSERT INTO alarms (id, org_id, runner_id, kind, subject) VALUES ('alm_X', 'ORG', 'rnr_X', 'chain_fork', 's');
INSERT INTO log_streams (id, org_id, install_id, job_id) VALUES ('str_X', 'ORG', 'ins_X', 'job_X');
INSERT INTO log_chunks (org_id, stream_id, first_seq, last_seq, prev_hash, raw_bytes, body) VALUES ('ORG', 'str_X', 1, 1, '', 1, 'x');
INSERT INTO log_tokens (hash, org_id, stream_id, runner_id, session_id, expires_at) VALUES (decode(md5('X') || md5('X'), 'hex'), 'ORG', 'str_X', 'rnr_X', 'ses_X', now() + interval '1 hour');
INSERT INTO chain_records (org_id, chain, seq, prev, hash, body) VALUES
    ('ORG', 'ORG', 1, '', 'a', 'x'), ('ORG', 'ORG', 2, 'a', 'b', 'x'), ('ORG', 'ins_X', 1, '', 'a', 'x'), ('ORG', 'ins_X', 2, 'a', 'b', 'x');
INSERT INTO chain_heads (org_id, chain, seq, hash) VALUES ('ORG', 'ORG', 2, 'b'), ('ORG', 'ins_X', 2, 'b');
INSERT INTO action_runs (id, org_id, install_id, action, trigger, key, created_by) VALUES ('run_X', 'ORG', 'ins_X', 'smoke', 'manual', 'k', 'ann');
