package nuon

warn contains "the plan is empty" if count(input.plan.resource_changes) == 0
