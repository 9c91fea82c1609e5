// Orders what a plan does by what it can break. Pure.

/** How far-reaching a change of an object is, the worst first. */
export const risks = ["delete", "replace", "access", "data", "rest", "unchanged"] as const;
export type Risk = (typeof risks)[number];

export const titles: Record<Risk, string> = {
  delete: "Deleted",
  replace: "Deleted and made again",
  access: "Who may do what, and what is reachable",
  data: "Where data are",
  rest: "Everything else",
  unchanged: "Unchanged",
};

// By the sort of an object, as Terraform, Kubernetes and Pulumi call it.
const access =
  /(^|[_:/.])iam|role(binding)?s?\b|role_|_role|policy|policies|rbac|service_?account|security_?group|firewall|network_?acl|ingress|gateway|webhookconfiguration|access_?key|_access\b|grant|member(ship)?\b|certificatesigningrequest/i;
const data =
  /(^|[_:/.])(db|rds|sql|s3|kms|efs|ebs|dynamodb|redis|elasticache|bigquery|spanner|redshift)([_:/.]|$)|bucket|database|storage|volume|disk|snapshot|backup|statefulset|persistent|\bsecret|_secret|_key\b|queue|topic|postgres|mysql|mongo|customresourcedefinition|^configmap/i;
const nothing = new Set(["no-op", "noop", "none", "no_change", "unchanged", "read", "same"]);

/** How far-reaching it is what a plan does with an object. */
export function riskOf(object: {
  action?: string | undefined;
  type?: string | undefined;
  name: string;
  address?: string | undefined;
}): Risk {
  const action = object.action ?? "update";
  if (nothing.has(action)) return "unchanged";
  if (action === "delete" || action === "destroy" || action === "forget") return "delete";
  if (action === "replace") return "replace";
  const sort = object.type || object.address || object.name;
  if (access.test(sort)) return "access";
  if (data.test(sort)) return "data";
  return "rest";
}
