package berth

deny contains sprintf("destroys %s", [r.address]) if {
	some r in input.plan.resource_changes
	"delete" in r.change.actions
	r.type in data.kept
}
