import { expect, test } from "vitest";
import { whyNot } from "./may";

const acme = { customer: "cus_acme", app: "app_shop", install: "ins_acme" };

test.each([
  ["an admin adds members", [{ role: "admin" }], "members:write", {}, undefined],
  ["an operator does not", [{ role: "operator" }], "members:write", {}, "needs the role admin: ask an admin of your org"],
  [
    "a viewer does not decide",
    [{ role: "viewer" }],
    "changes:decide",
    acme,
    "needs the role admin or operator or customer: ask an admin of your org",
  ],
  ["a customer decides at home", [{ role: "customer", customer_id: "cus_acme" }], "changes:decide", acme, undefined],
  [
    "and nowhere else",
    [{ role: "customer", customer_id: "cus_globex" }],
    "changes:decide",
    acme,
    "needs the role admin or operator or customer here: ask an admin of your org",
  ],
  ["an operator of an app", [{ role: "operator", app_id: "app_shop" }], "workflows:write", acme, undefined],
  [
    "a grant that is limited is not for the org",
    [{ role: "operator", app_id: "app_shop" }],
    "webhooks:write",
    {},
    "needs the role admin or operator here: ask an admin of your org",
  ],
  [
    "a role of a newer service allows nothing",
    [{ role: "wizard" }],
    "apps:read",
    {},
    "needs the role admin or operator or viewer: ask an admin of your org",
  ],
] as const)("%s", (_, grants, right, at, want) => {
  expect(whyNot(grants, right, at)).toBe(want);
});
