import { expect, test } from "vitest";
import { deedsOfInstall, deedsOfOrg, matching } from "./deeds";

const admin = [{ role: "admin" }];
const acme = { name: "acme", paused: false, install: "ins_1", customer: "cus_1", app: "app_1" };

test("each deed has its command and its place", () => {
  expect(deedsOfInstall(acme, admin)[0]).toEqual({
    name: "Deploy to acme",
    command: "berth deploy acme",
    href: "/installs/acme?do=deploy",
  });
  expect(deedsOfInstall({ ...acme, name: "a b" }, admin)[0]).toEqual({
    name: "Deploy to a b",
    command: "berth deploy 'a b'",
    href: "/installs/a%20b?do=deploy",
  });
});

test("what is paused is resumed", () => {
  const names = deedsOfInstall({ ...acme, paused: true }, admin).map((d) => d.name);
  expect(names).toContain("Resume acme");
  expect(names).not.toContain("Pause acme");
});

test("who may only read is offered what they may do", () => {
  expect(deedsOfInstall(acme, [{ role: "viewer" }]).map((d) => d.name)).toEqual(["Show the inputs of acme", "Show what happened to acme"]);
  expect(deedsOfInstall(acme, [{ role: "operator", customer_id: "cus_2" }])).toEqual([]);
  expect(deedsOfOrg([{ role: "viewer" }]).map((d) => d.name)).toEqual(["Verify the org’s chain", "End a browser’s session"]);
});

test("words find deeds by their beginnings, in any order", () => {
  const all = [...deedsOfInstall(acme, admin), ...deedsOfInstall({ ...acme, name: "globex" }, admin), ...deedsOfOrg(admin)];
  expect(matching(all, "dep glo").map((d) => d.name)).toEqual(["Deploy to globex"]);
  expect(matching(all, "acme pause").map((d) => d.name)).toEqual(["Pause acme"]);
  expect(matching(all, "drift").map((d) => d.name)).toEqual(["Look for drift in acme", "Look for drift in globex"]);
  expect(matching(all, "a")).toEqual([]);
  expect(matching(all, "ploy")).toEqual([]);
});
