import { expect, test } from "vitest";
import { type Risk, riskOf } from "./risk";

test.each<[action: string, type: string, want: Risk]>([
  ["delete", "terraform_data", "delete"],
  ["destroy", "aws_iam_role", "delete"],
  ["replace", "aws_db_instance", "replace"],
  ["update", "aws_iam_role_policy", "access"],
  ["create", "google_project_iam_member", "access"],
  ["update", "aws:iam/role:Role", "access"],
  ["create", "ClusterRoleBinding.rbac.authorization.k8s.io", "access"],
  ["update", "ServiceAccount", "access"],
  ["update", "aws_security_group", "access"],
  ["create", "Ingress.networking.k8s.io", "access"],
  ["update", "aws_db_instance", "data"],
  ["update", "aws_s3_bucket", "data"],
  ["update", "PersistentVolumeClaim", "data"],
  ["update", "StatefulSet.apps", "data"],
  ["update", "Secret", "data"],
  ["update", "ConfigMap", "data"],
  ["update", "Deployment.apps", "rest"],
  ["create", "terraform_data", "rest"],
  ["run", "", "rest"],
  ["no-op", "aws_iam_role", "unchanged"],
  ["read", "data.aws_ami", "unchanged"],
])("%s of %s is %s", (action, type, want) => {
  expect(riskOf({ action, type, name: "x" })).toBe(want);
});
