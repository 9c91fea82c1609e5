// Says what somebody may do, as the table of roles of the control plane does. A page
// offers no more; the control plane decides.

/** A right, as the API calls it. */
export type Right =
  | "members:write"
  | "tokens:write"
  | "customers:write"
  | "apps:read"
  | "apps:write"
  | "installs:write"
  | "workflows:write"
  | "changes:decide"
  | "policies:write"
  | "freezes:lift"
  | "policies:lift"
  | "runners:read"
  | "runners:write"
  | "webhooks:read"
  | "webhooks:write"
  | "org:read";

/** A grant of GET /me. */
export interface Grant {
  role: string;
  customer_id?: string;
  app_id?: string;
  install_id?: string;
}

const reads: Right[] = ["org:read", "apps:read", "runners:read"];
const operates: Right[] = [
  ...reads,
  "customers:write",
  "apps:write",
  "installs:write",
  "workflows:write",
  "changes:decide",
  "runners:write",
  "webhooks:read",
  "webhooks:write",
];
const rights: Record<string, Right[]> = {
  admin: [...operates, "members:write", "tokens:write", "policies:write", "freezes:lift", "policies:lift"],
  operator: operates,
  viewer: reads,
  customer: ["changes:decide"],
};

/** Where something is: grants that are limited reach only what they name. */
export interface Place {
  customer?: string;
  app?: string;
  install?: string;
}

/** Why somebody may not; undefined when they may. */
export function whyNot(grants: readonly Grant[], right: Right, at: Place = {}): string | undefined {
  const reaches = (g: Grant) =>
    (!g.customer_id || g.customer_id === at.customer) &&
    (!g.app_id || g.app_id === at.app) &&
    (!g.install_id || g.install_id === at.install);
  if (grants.some((g) => rights[g.role]?.includes(right) && reaches(g))) return undefined;
  const roles = Object.keys(rights).filter((role) => rights[role]?.includes(right));
  return `needs the role ${roles.join(" or ")}${grants.some((g) => rights[g.role]?.includes(right)) ? " here" : ""}: ask an admin of your org`;
}
