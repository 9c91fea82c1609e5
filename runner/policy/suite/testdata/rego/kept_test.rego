package berth

plan(type) := {"plan": {"resource_changes": [{"address": "x.a", "type": type, "change": {"actions": ["delete"]}}]}}

test_database if deny == {"destroys x.a"} with input as plan("aws_db_instance")

test_other if count(deny) == 0 with input as plan("random_pet")

test_wrong if count(deny) == 3 with input as plan("aws_db_instance")

