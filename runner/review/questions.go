package review

type question struct {
	text     string
	answer   func(Facts) func(*Answer)
	commands []string
	tests    []string
	controls []string
}

// questions are those of a customer's security reviewer. What no runner can know, since
// it is about the vendor's company, is answered so.
var questions = []question{
	{"If the control plane is taken over, is what it can do limited to what your rules allow?", takenOver,
		[]string{"berth-runner consent show", "berth-runner guardrails list"}, []string{"TestAttackChangeWithoutConsent", "TestGuardrailThatDenies", "TestAttackPauseIsNotTalkedAway"}, []string{"CC6.1", "A.8.32", "CM-5"}},
	{"Are permissions limited per phase, without wildcards?", fixed(Partly, "an app's manifest and `berth` show the rules that its objects need; in a cluster each job gets credentials of its own. Cloud permissions come with the stack that you apply: read it there; the runner cannot see policies of your cloud"),
		[]string{"berth-runner roles list", "berth-runner guardrails explain CHANGE"}, []string{"TestRightsOfBuilder", "TestKubernetesStack"}, []string{"CC6.3", "A.8.2", "AC-6"}},
	{"Is it only your side that can widen what the runner may do?", widen,
		[]string{"berth-runner guardrails list", "berth-runner consent show"}, []string{"TestAttackRoles", "TestAttackConsentByAnEngine"}, []string{"CC6.3", "A.8.2", "AC-6(1)"}},
	{"Is there no inbound port, and are outbound hosts known?", listeners,
		[]string{"berth-runner egress show --output csv", "berth-runner review --output json"}, []string{"TestAttackSessionNamesOtherHosts", "TestAttackRegistryWithoutToken"}, []string{"CC6.6", "A.8.20", "SC-7"}},
	{"Are a proxy, a private authority and a private link supported?", proxy,
		[]string{"berth-runner preflight"}, []string{"TestAttackSessionNamesOtherHosts"}, []string{"CC6.6", "A.8.20", "SC-7(8)"}},
	{"Is every class of bytes that leaves known, and can it be switched off?", egressAnswer,
		[]string{"berth-runner egress list", "berth-runner egress verify"}, []string{"TestEveryCallHasAClass", "TestAttackClientWithoutTheLedger", "TestAttackRewrittenLedger", "TestLogBodiesAreSwitchedOff"}, []string{"CC6.7", "A.5.14", "SC-7(10)"}},
	{"Are plans, states and logs never in clear at the vendor?", inClear,
		[]string{"berth-runner egress off log-bodies", "berth-runner egress off plan-details", "berth-runner state list"}, []string{"TestAttackSealedThingsPassedOffAsAnother", "TestAttackSecretsInTheLogOfAnApply"}, []string{"CC6.7", "A.8.24", "SC-28"}},
	{"Are secrets and keys kept on your side, in your KMS?", secretsAnswer,
		[]string{"berth-runner secrets", "berth-runner status"}, []string{"TestAttackEngine", "TestAttackNeighbour"}, []string{"CC6.1", "A.8.24", "SC-12"}},
	{"Is the runner's identity issued once, bound, rotated and revoked?", identity,
		[]string{"berth-runner status", "berth-runner chain key"}, []string{"TestAttackStolenKey", "TestAttackLostDisk", "TestPredecessors"}, []string{"CC6.1", "A.5.16", "IA-3"}},
	{"Is what ran identical to what was approved?", same,
		[]string{"berth-runner show CHANGE", "berth-runner chain verify"}, []string{"TestAttackOnePlanManyOrders", "TestAttackPinned", "TestChainRecordsMutations"}, []string{"CC8.1", "A.8.32", "CM-3"}},
	{"Does it take more than one person to approve a change?", alone,
		[]string{"berth-runner consent show"}, []string{"TestSettle", "TestVotesAtTheSameMomentCountOnce"}, []string{"CC8.1", "A.5.3", "AC-5"}},
	{"Is who asked never who approves, admins included?", func(f Facts) func(*Answer) {
		if f.Consent == "vendor" || f.ByMachine {
			return say(Partly, "the vendor's policy can ask for that; on your side no holder is named who could be compared: %s", f.consentText())
		}
		return say(Partly, "a holder whose `accounts` at the vendor asked for a change does not approve it, by the signed order; who has no accounts named is not compared. %s", f.consentText())
	}, []string{"berth-runner consent show"}, []string{"TestSettle", "TestApproveAllIsNoWayAroundAPolicy"}, []string{"CC8.1", "A.5.3", "AC-5"}},
	{"Are there windows and freezes of yours?", windows,
		[]string{"berth-runner consent rules show"}, []string{"TestLimitsOfRulesAreCountedFromTheChain", "TestRulesOnlyRise"}, []string{"CC8.1", "A.8.32", "CM-3"}},
	{"Is emergency access yours to give, with an end that needs no network?", emergency,
		[]string{"berth-runner roles list"}, []string{"TestAttackRoles", "TestRoleLetsAnActionRun"}, []string{"CC6.2", "A.8.2", "AC-2(2)"}},
	{"Are sessions recorded, tamper-evident, and yours?", chainAnswer,
		[]string{"berth-runner chain verify", "berth-verify chain FILE --keys"}, []string{"TestAttackChain", "TestChainThatWasCutStopsMutations", "TestKeysVouch"}, []string{"CC7.2", "A.8.15", "AU-9"}},
	{"Can you stop everything without the vendor?", stop,
		[]string{"berth-runner stop-now", "berth-runner sever"}, []string{"TestAttackPauseIsNotTalkedAway"}, []string{"CC7.4", "A.5.29", "IR-4"}},
	{"Are logs described, kept, exported and immutable?", func(f Facts) func(*Answer) {
		return say(Partly, "fields: docs/reference/logs.md; each log is numbered and hashed, its digest is in evidence; the chain has %d records. An export to your SIEM: not yet", f.ChainRecords)
	}, []string{"berth-runner evidence --out DIR"}, []string{"TestEvidence", "TestAttackEvidence"}, []string{"CC7.2", "A.8.15", "AU-11"}},
	{"Is it known whose clock counts?", fixed(Yes, "the runner's own, for expiry, windows and records; standing rules never see a clock before the last record; the control plane's times cannot make settings valid for years"),
		[]string{"berth-runner chain verify"}, []string{"TestHistoryOfAReplacedChain", "TestAttackReportsFromTheFuture"}, []string{"CC7.2", "A.8.17", "AU-8"}},
	{"Are artifacts signed, with provenance and SBOM, and verified here?", signedArtifacts,
		[]string{"berth-runner trust vendor-key list", "berth-runner show CHANGE"}, []string{"TestTamper", "TestAttestations", "TestAttackUnsignedReleases", "TestAttackUnsignedImage"}, []string{"CC6.8", "A.8.30", "SR-4"}},
	{"Are downgrades and mixed releases refused?", downgrades,
		[]string{"berth-runner trust vendor-key list", "berth-runner consent rules show"}, []string{"TestRulesOnlyRise", "TestWish", "TestAttackAcceptanceOfAnotherRelease", "TestSignedReleases"}, []string{"CC6.8", "A.8.19", "SI-7"}},
	{"Do you decide about updates of the runner, with a way back?", updates,
		[]string{"berth-runner trust release-key list", "berth-runner version"}, []string{"TestAttackPackages", "TestRunnerUpdate"}, []string{"CC8.1", "A.8.19", "CM-3"}},
	{"Are scripts and plugins of known origin, in a sandbox?", sandbox,
		[]string{"berth-runner scripts", "berth-runner status"}, []string{"TestAttackScripts", "TestAttackPluginIsNotAdmitted", "TestNoNetwork"}, []string{"CC6.8", "A.8.19", "CM-11"}},
	{"Are jobs and tenants kept apart, with evidence?", sandbox,
		[]string{"berth-runner status"}, []string{"TestAttackNeighbour", "TestAttackEngine", "TestTenancy"}, []string{"CC6.1", "A.8.22", "SC-39"}},
	{"Is there a FIPS mode?", fips, []string{"berth-runner review --output json"}, []string{"TestFactsChangeAnswers"}, []string{"CC6.1", "A.8.24", "SC-13"}},
	{"Are there deadlines for vulnerabilities, and a way to report them?", fixed(NotYet, "nothing in this runner says so: ask the vendor and the publisher of Berth"), []string{"berth-runner version"}, nil, []string{"CC7.1", "A.8.8", "RA-5"}},
	{"Is there an SBOM of the runner?", func(f Facts) func(*Answer) {
		if f.Modules == 0 {
			return say(No, "this executable does not say what it was built of")
		}
		return say(Partly, "the executable names the %d modules that it was built of, with their checksums (go version -m); it was built with %s. A signed SBOM document of it: not yet", f.Modules, f.Go)
	}, []string{"go version -m berth-runner"}, []string{"TestReviewOfARunner"}, []string{"CC7.1", "A.8.30", "SR-4"}},
	{"Do the vendor's people use SSO and MFA, and are they off-boarded?", fixed(NotYet, "a runner cannot know; SSO and MFA are not in Berth yet. Tokens have roles and ends, and one does not outlive the token that made it. Ask the vendor"), []string{"berth members list"}, []string{"TestAttackTokensThatOutliveTheirMaker"}, []string{"CC6.2", "A.5.16", "AC-2"}},
	{"Does your side keep working through an outage or the end of the vendor?", outage, []string{"berth-runner status", "berth-runner state list"}, []string{"TestFaults", "TestKill"}, []string{"A1.2", "A.5.30", "CP-10"}},
	{"Is an approval void after the control plane was restored from a backup?", func(f Facts) func(*Answer) {
		return say(Partly, "an order whose nonce, fence or plan was used here is refused, whatever the control plane believes; the chain here (record %d) is longer than a restored one, and the difference stops changes. A signed epoch for restores: not yet", f.ChainRecords)
	}, []string{"berth-runner chain verify"}, []string{"TestAttackOnePlanManyOrders", "TestChainThatWasCutStopsMutations"}, []string{"A1.3", "A.8.13", "CP-10"}},
	{"Is there proof at off-boarding that roles and data are gone?", fixed(NotYet, "a teardown is a change like any other, and the chain has its outcome; an inventory of what is left in your cloud: not yet"), []string{"berth-runner evidence --out DIR"}, []string{"TestEvidence"}, []string{"CC6.5", "A.8.10", "MP-6"}},
}
