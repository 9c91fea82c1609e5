package schema

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
)

// actedOn names, for every key that this version acts on and every value of a
// key that has a list of them, a test that fails when nothing acts on it:
// PACKAGE.TEST to keys.
var actedOn = map[string][]string{
	// How a folder is read.
	"check.TestDiagnostics": {"metadata.version", "metadata.version=v1", "metadata.version=v2", "sandbox.berth.image_key",
		"sandbox.berth.health_check", "sandbox.berth.health_check.unhealthy_after", "sandbox.berth.health_check.healthy_after", "sandbox.berth.health_check.remediation", "sandbox.berth.health_check.remediation_attempts",
		"sandbox.berth.health_check.remediation_cooldown", "sandbox.berth.health_check.remediation_revert", "sandbox.berth.health_check.remediation_mode", "sandbox.berth.health_check.remediation_mode=automatic", "sandbox.berth.health_check.remediation_mode=ask", // warned of: nothing of a sandbox is probed
	}, // a folder without it is refused
	"api.TestReadmeOfInstall":           {"metadata.readme"},
	"appconfig.TestOneFileIsTheSameApp": {"full.config_vars"},
	"appconfig.TestOneFileHasEveryBlock": {
		"full.inputs", "full.sandbox", "full.runner", "full.stack", "full.secrets", "full.permissions", "full.break_glass", "full.policies", "full.components",
		"full.actions", "full.runbooks", "full.installs", "full.branch", "full.branches", "full.operation_roles", "full.kubernetes_contexts", "full.triggers", "full.installer",
	},
	"appconfig.TestEveryBlockMergesFiles": {
		"metadata.source", "sandbox.source", "runner.source", "stack.source", "inputs.source", "input.source", "input-group.source",
		"policies.source", "policies.policy[].source", "policy.source", "component.source", "action.source", "secret.source", "secrets.source", "install.source", "kubernetes-contexts.source", "permission.source", "break-glass.source", "break-glass.role[].source",
	},
	"check.TestWhatIsActedOnIsNotTold": { // the values that ask for what is done anyway; all others are reported
		"runner.runner_type", "runner.runner_type=local", "sandbox.type", "sandbox.type=terraform", "component.kubernetes_context", "action.kubernetes_context",
	},

	"orders.TestPoliciesOfAPlan": {
		"policies.policy",
		"policies.policy[].name", "policies.policy[].components", "policies.policy[].contents", "policies.policy[].engine", "policies.policy[].engine=kyverno", "policies.policy[].engine=opa", "policies.policy[].type", "policy.name", "policy.components", "policy.contents", "policy.engine", "policy.engine=kyverno", "policy.engine=opa", "policy.type",
		"policies.policy[].type=container_image", "policies.policy[].type=helm_chart", "policies.policy[].type=kubernetes_manifest", "policies.policy[].type=terraform_module", "policies.policy[].type=kubernetes_cluster", "policies.policy[].type=sandbox", "policies.policy[].type=runner_job_terraform_deploy", "policies.policy[].type=runner_job_helm_deploy", "policies.policy[].type=runner_job_action_workflow", "policy.type=container_image", "policy.type=helm_chart", "policy.type=kubernetes_manifest", "policy.type=terraform_module", "policy.type=kubernetes_cluster", "policy.type=sandbox", "policy.type=runner_job_terraform_deploy", "policy.type=runner_job_helm_deploy", "policy.type=runner_job_action_workflow",
	},

	// What a sync makes of it.
	"api.TestSyncFromFolderToRelease": {
		"metadata.display_name", "metadata.description", "component.name",
		"inputs.group", "inputs.input", "input.name", "input.display_name", "input.description", "input.group", "input-group.name",
	},
	"graph.TestGraph": {"component.dependencies"},
	"workflow.TestRemediationThatIsAskedFor": {
		"action.berth.health_check.remediation_mode", "action.berth.health_check.remediation_mode=automatic", "action.berth.health_check.remediation_mode=ask",
		"component.berth.health_check.remediation_mode", "component.berth.health_check.remediation_mode=automatic", "component.berth.health_check.remediation_mode=ask",
	},
	"workflow.TestGateThatTheAppAsksFor": {"component.health", "component.health.block_deploy", "component.health.stabilization_window", "component.health.required_checks"},
	"appconfig.TestProbesOfComponents":   {"component.health.probes", "component.components.*.health.probes"},
	"appconfig.TestOlderPlaceOfHealth": {
		"component.components", "component.components.*.health", "component.components.*.health.block_deploy", "component.components.*.health.stabilization_window", "component.components.*.health.required_checks",
	},
	"workflow.TestRollbackThatTheAppAsksFor": {"component.berth.auto_rollback", "sandbox.berth.auto_rollback"},
	"orders.TestReversalThatTheAppSays": {
		"component.berth.rollback", "component.berth.rollback=data_loss", "component.berth.rollback=irreversible", "component.berth.rollback=reversible",
		"sandbox.berth.rollback", "sandbox.berth.rollback=data_loss", "sandbox.berth.rollback=irreversible", "sandbox.berth.rollback=reversible",
	},
	"orders.TestSurvey": {
		"component.drift_schedule", "component.berth.drift", "component.berth.drift.accept", "component.berth.drift.accept[].kind", "component.berth.drift.accept[].namespace",
		"component.berth.drift.accept[].name", "component.berth.drift.accept[].path", "component.berth.drift.accept[].manager", "component.berth.drift.accept[].reason",
		"component.berth.drift.accept[].by", "component.berth.drift.accept[].until",
	},
	"orders.TestSurveyOfModules": {
		"sandbox.drift_schedule", "sandbox.berth.drift", "sandbox.berth.drift.accept", "sandbox.berth.drift.accept[].kind", "sandbox.berth.drift.accept[].namespace",
		"sandbox.berth.drift.accept[].name", "sandbox.berth.drift.accept[].path", "sandbox.berth.drift.accept[].manager", "sandbox.berth.drift.accept[].reason",
		"sandbox.berth.drift.accept[].by", "sandbox.berth.drift.accept[].until",
	},
	"appconfig.TestSources": {
		"component.public_repo", "component.public_repo.repo", "component.public_repo.directory", "component.public_repo.branch",
		"component.connected_repo", "component.connected_repo.repo", "component.connected_repo.directory", "component.connected_repo.branch",
		"sandbox.public_repo", "sandbox.public_repo.repo", "sandbox.public_repo.directory", "sandbox.public_repo.branch",
		"sandbox.connected_repo", "sandbox.connected_repo.repo", "sandbox.connected_repo.directory", "sandbox.connected_repo.branch",
		"sandbox.berth", "sandbox.berth.local_source", "component.berth", "component.berth.local_source", "component.berth.oci_source", "sandbox.berth.oci_source",
		"component.type=external_image", "container-image.public", "container-image.public.image_url", "container-image.public.tag", "container-image.public.update_policy",
		"container-image.aws_ecr", "container-image.aws_ecr.image_url", "container-image.aws_ecr.tag", "container-image.aws_ecr.update_policy",
		"component.type=docker_build", "docker-build.dockerfile", "docker-build.context", "docker-build.target", "docker-build.args", "docker-build.env_vars",
		"docker-build.platforms", "docker-build.network", "docker-build.network=default", "docker-build.network=none", "docker-build.secrets",
		"kubernetes-manifest.manifest",
		"helm.helm_repo", "helm.helm_repo.repo_url", "helm.helm_repo.chart", "helm.helm_repo.version",
	},
	"appconfig.TestPluginGrants": {
		"component.berth.plugin", "component.berth.plugin.signer", "component.berth.plugin.network", "component.berth.plugin.hosts", "component.berth.plugin.install_dir", "component.berth.plugin.paths", "component.berth.plugin.roles", "component.berth.plugin.state",
		"sandbox.berth.plugin", "sandbox.berth.plugin.signer", "sandbox.berth.plugin.network", "sandbox.berth.plugin.hosts", "sandbox.berth.plugin.install_dir", "sandbox.berth.plugin.paths", "sandbox.berth.plugin.roles", "sandbox.berth.plugin.state",
	},
	"appconfig.TestScriptSources": {
		"action.steps[].public_repo", "action.steps[].public_repo.repo", "action.steps[].public_repo.directory", "action.steps[].public_repo.branch",
		"action.steps[].connected_repo", "action.steps[].connected_repo.repo", "action.steps[].connected_repo.directory", "action.steps[].connected_repo.branch",
	},
	"keyring.TestECR":                      {"container-image.aws_ecr.region", "container-image.aws_ecr.iam_role_arn"},
	"build.TestLocalSourceBecomesARelease": {"component.build_timeout"},

	"build.TestPulumiOfARevision": {"pulumi.npm_scripts"},

	// What an engine is told, and does.
	"orders.TestPulumiSandbox": {"sandbox.type=pulumi", "sandbox.runtime", "sandbox.pulumi_config"},
	"orders.TestClusters": {
		"kubernetes-contexts.kubernetes_context", "kubernetes-contexts.kubernetes_context[].name", "kubernetes-contexts.kubernetes_context[].component",
	},
	"agent.TestTerraformAndOpenTofu": {
		"component.berth.tool", "component.berth.tool=opentofu", "component.berth.tool=terraform",
		"sandbox.berth.tool", "sandbox.berth.tool=opentofu", "sandbox.berth.tool=terraform",
	},
	"orders.TestSandbox": {"sandbox.terraform_version", "sandbox.vars", "sandbox.env_vars", "sandbox.var_file", "sandbox.var_file[].contents"},
	"orders.TestFill": {
		"component.type=pulumi", "pulumi.runtime", "pulumi.config", "pulumi.env_vars",
		"component.type", "component.type=terraform_module", "component.type=helm_chart", "component.type=kubernetes_manifest", "component.type=container_image",
		"component.deploy_timeout",
		"terraform.terraform_version", "terraform.vars", "terraform.env_vars", "terraform.var_file", "terraform.var_file[].contents",
		"helm.chart_name", "helm.namespace", "helm.create_namespace", "helm.storage_driver", "helm.storage_driver=secret", "helm.storage_driver=configmap", "helm.storage_driver=nuon",
		"helm.take_ownership", "helm.crds", "helm.crds=install", "helm.crds=upgrade", "helm.crds=skip", "helm.history_limit", "helm.atomic", "helm.values", "helm.values_file", "helm.values_file[].contents",
		"runner.helm_driver", "runner.helm_driver=configmap", "runner.helm_driver=secret",
		"kubernetes-manifest.namespace", "kubernetes-manifest.create_namespace",
		"install.components", "install.components.*.helm_values", "install.components.*.tf_vars",
	},
	"engine.TestBuildKustomize": {
		"kubernetes-manifest.kustomize", "kubernetes-manifest.kustomize.path", "kubernetes-manifest.kustomize.patches",
	},
	"engine.TestBuildKustomizeCharts": {"kubernetes-manifest.kustomize.enable_helm"},
	"engine.TestBuildKustomizeRefuses": {
		"kubernetes-manifest.kustomize.load_restrictor", "kubernetes-manifest.kustomize.load_restrictor=none", "kubernetes-manifest.kustomize.load_restrictor=rootOnly",
	},
	"orders.TestActionOfAnApp": {
		"action.name", "action.timeout", "action.enable_kube_config", "action.image",
		"action.steps", "action.steps[].name", "action.steps[].command", "action.steps[].inline_contents", "action.steps[].env_vars", "action.steps[].enable_kube_config",
	},
	"engine.TestActionNeedsTools":            {"action.berth.tools"},
	"engine.TestBuildWantsAnImageSigned":     {"component.berth.image_key"},
	"orders.TestScriptsOfAnApp":              {"action.inputs", "action.inputs[].name", "action.triggers[].type=cron", "action.triggers[].cron_schedule"},
	"api.TestInstallTellsWhatHasNoEffectYet": {"action.description", "action.inputs[].description"},

	// What an install does with it.
	"orders.TestSecretsOfAnApp": {
		"secrets.secret", "secret.name", "secret.description", "secret.display_name", "secret.required", "secret.auto_generate", "secret.default", "secret.user_configurable",
	},
	"orders.TestSecretCopies": {
		"secret.kubernetes_sync", "secret.kubernetes_secret_name", "secret.kubernetes_secret_namespace", "secret.kubernetes_sync_targets",
		"secret.kubernetes_sync_targets[].key", "secret.kubernetes_sync_targets[].name", "secret.kubernetes_sync_targets[].namespaces",
	},
	"secretstore.TestDeclaredSecretsAreMade": {"secret.format", "secret.format=base64"},
	"api.TestInputs":                         {"input.default", "input.sensitive"},
	"installs.TestApply":                     {"input.required", "input.min", "input.max", "input.pattern"},
	"appconfig.TestInputTypes": {
		"input.type", "input.type=string", "input.type=number", "input.type=list", "input.type=json", "input.type=bool",
	},
	"workflow.TestWhatIsSwitchedOffIsRemovedAndMadeAgain": {"component.toggleable"},
	"workflow.TestWhatIsOffByDefaultIsNotDeployed":        {"component.default_enabled"},
	"workflow.TestFailedDeployIsTriedAgain":               {"component.max_auto_retries"},
	"workflow.TestStateHasTheVarNamesOfComponents":        {"component.var_name"},
	"flow.TestNextOfOneChange":                            {"component.skip_noops", "sandbox.skip_noops"}, // an empty plan is never applied
	"check.TestActionNeedsAny":                            {"action.dependencies"},
	"orders.TestInputsOfAnAction":                         {"action.inputs[].required"},
	"workflow.TestTriggersBecomeSteps": {
		"action.triggers", "action.triggers[].type", "action.triggers[].index", "action.triggers[].component_name",
		"action.triggers[].type=manual", // every action can be run by hand
	},
	"flow.TestEveryPointOfTheLifeCycle": {
		"action.triggers[].type=pre-provision", "action.triggers[].type=post-provision", "action.triggers[].type=pre-deprovision", "action.triggers[].type=post-deprovision",
		"action.triggers[].type=pre-reprovision", "action.triggers[].type=post-reprovision", "action.triggers[].type=pre-reprovision-sandbox",
		"action.triggers[].type=post-reprovision-sandbox", "action.triggers[].type=pre-deprovision-sandbox", "action.triggers[].type=post-deprovision-sandbox",
		"action.triggers[].type=post-provision-sandbox", "action.triggers[].type=pre-update-inputs", "action.triggers[].type=post-update-inputs",
		"action.triggers[].type=pre-deploy-all-components", "action.triggers[].type=post-deploy-all-components",
		"action.triggers[].type=pre-teardown-all-components", "action.triggers[].type=post-teardown-all-components",
		"action.triggers[].type=pre-deploy-component", "action.triggers[].type=post-deploy-component",
		"action.triggers[].type=pre-teardown-component", "action.triggers[].type=post-teardown-component",
		"action.triggers[].type=pre-enable-component", "action.triggers[].type=post-enable-component",
		"action.triggers[].type=pre-disable-component", "action.triggers[].type=post-disable-component",
		"action.triggers[].type=pre-secrets-sync", "action.triggers[].type=post-secrets-sync",
	},
	"workflow.TestRoleSwitchStartsItsActions": {"action.triggers[].type=role-enabled", "action.triggers[].type=role-disabled"},
	"roles.TestJudge":                         {"action.break_glass_role"},
	"orders.TestRolesOfAnApp": {
		"permission.type", "permission.type=custom", "permission.type=break_glass", "permission.name", "permission.display_name", "permission.description",
		"break-glass.role", "break-glass.role[].name", "break-glass.role[].display_name", "break-glass.role[].description", "break-glass.role[].type", "break-glass.role[].type=break_glass",
	},
	"check.TestBreakGlassRolesAreOfOneType": { // any other is refused
		"break-glass.role[].type=custom", "break-glass.role[].type=provision", "break-glass.role[].type=maintenance", "break-glass.role[].type=deprovision",
	},
	"appconfig.TestTriggerAliases": {"action.triggers[].type=pre-component-deploy", "action.triggers[].type=post-component-deploy"},
	"appconfig.TestHealthCheck":    {"action.labels", "action.berth", "action.berth.health_check"},
	"orders.TestHeals": {
		"action.berth.health_check.remediation", "action.berth.health_check.remediation_attempts", "action.berth.health_check.remediation_cooldown", "action.berth.health_check.remediation_revert",
		"component.berth.health_check.remediation", "component.berth.health_check.remediation_attempts", "component.berth.health_check.remediation_cooldown", "component.berth.health_check.remediation_revert",
	},
	"health.TestProbeIsJudgedByItsOwnThresholds": {"component.berth.health_check", "component.berth.health_check.unhealthy_after", "component.berth.health_check.healthy_after"},
	"health.TestCheckIsJudgedByItsOwnThresholds": {"action.berth.health_check.unhealthy_after", "action.berth.health_check.healthy_after"},
	"orders.TestRehearse":                        {"sandbox.berth.stand_in", "component.berth.stand_in"},
	"workflow.TestStandInsOnlyComeToRehearsals":  {"action.berth.stand_in"},
	"installsync.TestDeclare": {
		"install.name", "install.approval_option", "install.approval_option=prompt", "install.approval_option=approve-all", "install.approval_option=auto",
		"install.inputs", "install.labels", "install.component_toggles", "install.berth", "install.berth.customer",
		"stack.type", "stack.type=local", "stack.type=kubernetes",
	},
}

// document is what keys of a kind are called in the tables, "" for keys that
// another document has too.
func document(kind Kind, key string) string {
	base, below, nested := strings.Cut(key, "[].")
	switch kind.Name {
	case "full":
		if strings.ContainsAny(key, ".[") || slices.ContainsFunc(mustKind("metadata").Keys(), func(k Key) bool { return k.Path == key }) {
			return ""
		}
	case "secrets":
		if nested {
			return "secret." + below
		}
	case "inputs":
		if nested {
			return map[string]string{"group": "input-group.", "input": "input."}[base] + below
		}
	case "component-root":
		return "component." + key
	}
	if len(kind.blocks) == 2 && slices.ContainsFunc(mustKind("component-root").Keys(), func(k Key) bool { return k.Path == key }) && kind.Name != "full" {
		return ""
	}
	return kind.Name + "." + key
}

func mustKind(name string) Kind {
	k, ok := fileKind(name)
	if !ok {
		panic("no kind " + name)
	}
	return k
}

// allParts lists every key of the format, and every value of a key that has a
// list of them.
func allParts(kinds []Kind) []string {
	parts := map[string]bool{}
	for _, kind := range kinds {
		for _, key := range kind.Keys() {
			name := document(kind, key.Path)
			if name == "" {
				continue
			}
			parts[name] = true
			values := key.Enum
			if name == "component.type" {
				values = appconfig.ComponentTypeNames()
			}
			for _, value := range values {
				parts[name+"="+value] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(parts))
}

// accounts says what is wrong between the parts of the format, the rows of what
// is not acted on yet, and the tests of what is.
func accounts(parts []string, rows []check.NotYet, shown map[string][]string) (problems []string) {
	always, sometimes := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		for _, key := range row.Keys {
			if row.When == "" {
				always[key] = true
			} else {
				sometimes[key] = true
			}
		}
	}
	acted := map[string]bool{}
	for test, keys := range shown {
		for _, key := range keys {
			if acted[key] {
				problems = append(problems, fmt.Sprintf("%s is acted on twice, once in %s", key, test))
			}
			acted[key] = true
		}
	}
	known := map[string]bool{}
	for _, part := range parts {
		// A row says the same of all that is below its keys.
		above := part
		for known[above] = true; !always[above]; {
			i := strings.LastIndexAny(above, ".=[")
			if i < 0 {
				break
			}
			above = above[:i]
			known[above] = true
		}
		switch not := always[above]; {
		case not && acted[part]:
			problems = append(problems, part+" is acted on, and among what is not yet")
		case !not && !acted[part]:
			problems = append(problems, part+" is neither acted on nor among what is not yet")
		}
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(always)), slices.Collect(maps.Keys(sometimes)), slices.Collect(maps.Keys(acted))) {
		if !known[key] && !slices.Contains(parts, key) && !slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, key+".") }) {
			problems = append(problems, key+" is no part of the format")
		}
	}
	for key := range sometimes {
		if !acted[key] {
			problems = append(problems, key+" has no effect in some uses, and none is acted on")
		}
	}
	slices.Sort(problems)
	return problems
}

// TestEveryKeyIsActedOnOrNotYet walks the format: anyone who adds a key says which
// test shows what it does, or adds it to what has no effect yet.
func TestEveryKeyIsActedOnOrNotYet(t *testing.T) {
	t.Parallel()
	parts := allParts(fileKinds)
	for _, problem := range accounts(parts, check.NotYets(), actedOn) {
		t.Error(problem)
	}
	if len(parts) < 250 {
		t.Errorf("only %d parts: the test looks at the wrong thing", len(parts))
	}
	tests := testsOfTheRepository(t)
	for name := range actedOn {
		if n := tests[name]; n != 1 {
			t.Errorf("there are %d tests called %s, want one", n, name)
		}
	}
}

// TestAccounts holds that the walk can fail.
func TestAccounts(t *testing.T) {
	t.Parallel()
	type made struct {
		Name string `toml:"name"`
		Mood string `toml:"mood" enum:"good,bad"`
	}
	parts := allParts([]Kind{{Name: "made", blocks: types(made{})}})
	if diff := cmp.Diff([]string{"made.mood", "made.mood=bad", "made.mood=good", "made.name"}, parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	rows := []check.NotYet{{Keys: []string{"made.mood=bad"}}}
	tests := []struct {
		name  string
		rows  []check.NotYet
		shown map[string][]string
		want  []string
	}{
		{"all is accounted for", rows, map[string][]string{"a.T": {"made.name", "made.mood", "made.mood=good"}}, nil},
		{"a document", []check.NotYet{{Keys: []string{"made"}}}, nil, nil},
		{"a new key", rows, map[string][]string{"a.T": {"made.mood", "made.mood=good"}}, []string{"made.name is neither acted on nor among what is not yet"}},
		{"a new value", nil, map[string][]string{"a.T": {"made.name", "made.mood", "made.mood=good"}}, []string{"made.mood=bad is neither acted on nor among what is not yet"}},
		{"both", rows, map[string][]string{"a.T": {"made.name", "made.mood", "made.mood=good", "made.mood=bad"}}, []string{"made.mood=bad is acted on, and among what is not yet"}},
		{"a key that went", append(slices.Clone(rows), check.NotYet{Keys: []string{"made.gone"}}), map[string][]string{"a.T": {"made.name", "made.mood", "made.mood=good"}}, []string{"made.gone is no part of the format"}},
		{"a use of what is not acted on", []check.NotYet{{Keys: []string{"made"}}, {Keys: []string{"made.name"}, When: "sometimes"}}, nil, []string{"made.name has no effect in some uses, and none is acted on"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, accounts(parts, tt.rows, tt.shown)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testsOfTheRepository counts the tests called FOLDER.TEST.
func testsOfTheRepository(t *testing.T) map[string]int {
	t.Helper()
	root := os.DirFS("../../..")
	tests := map[string]int{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := fs.ReadFile(root, name)
		for _, found := range testFunction.FindAllSubmatch(data, -1) {
			tests[path.Base(path.Dir(name))+"."+string(found[1])]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
