import { expect, test } from "vitest";
import {
  bulkCommand,
  createCommand,
  customerCommand,
  deployCommand,
  labelsOf,
  memberCommand,
  revokeCommand,
  rollbackCommand,
  runCommand,
  signCommand,
  word,
} from "./command";

test("commands are those of the command line", () => {
  expect(bulkCommand("deploy", ["acme", "globex"])).toBe("berth bulk deploy --install acme,globex");
  expect(bulkCommand("pause", ["acme"], "incident 4711")).toBe("berth bulk pause --install acme --reason 'incident 4711'");
  expect(deployCommand({ install: "acme" })).toBe("berth deploy acme");
  expect(deployCommand({ install: "acme", components: ["sandbox", "api"], release: "4", planOnly: true })).toBe(
    "berth deploy acme api --sandbox --to 4 --plan",
  );
  expect(rollbackCommand({ install: "acme", components: ["api"], release: "3" })).toBe("berth rollback acme --component api --to 3");
  const install = { name: "acme", app: "hello", customer: "acme", stack: "local", inputs: {}, provision: true };
  expect(createCommand(install)).toBe("berth installs create acme --app hello");
  expect(createCommand({ ...install, customer: "Acme Ltd", stack: "kubernetes", inputs: { greeting: "Hi you" }, provision: false })).toBe(
    "berth installs create acme --app hello --customer 'Acme Ltd' --stack kubernetes --input 'greeting=Hi you' --no-provision",
  );
  expect(createCommand({ ...install, name: "", app: "", customer: "" })).toBe("berth installs create NAME --app APP");
  expect(signCommand("hello@4", "sha256:1")).toBe("berth releases sign hello@4 --key FILE --expect sha256:1");
  expect(revokeCommand("hello@4", "rel_1")).toBe("berth releases revoke hello@4 --key FILE --reason TEXT --expect rel_1");
  expect(runCommand("acme", "restart", { version: "2" })).toBe("berth actions run acme restart --input version=2");
});

test("members and customers are added by command as by form", () => {
  const ada = { name: "ada", kind: "user", email: "", role: "viewer" };
  expect(memberCommand(ada)).toBe("berth members create ada --role viewer");
  expect(memberCommand({ ...ada, name: "", email: "ada@example.com" })).toBe(
    "berth members create NAME --role viewer --email ada@example.com",
  );
  expect(
    memberCommand({ ...ada, name: "ci bot", kind: "service", email: "x", role: "operator", within: { kind: "app", name: "shop" } }),
  ).toBe("berth members create 'ci bot' --role operator --kind service --app shop");
  expect(memberCommand({ ...ada, role: "customer", within: { kind: "customer", name: "" } })).toBe(
    "berth members create ada --role customer --customer CUSTOMER",
  );
  expect(customerCommand("", "")).toBe("berth customers create NAME");
  expect(customerCommand("acme", " tier=gold, region=eu ")).toBe("berth customers create acme --label tier=gold --label region=eu");
});

test("labels are typed as key=value", () => {
  expect(labelsOf("")).toEqual({});
  expect(labelsOf(" tier=gold  note=a=b,empty= ")).toEqual({ tier: "gold", note: "a=b", empty: "" });
  expect(() => labelsOf("tier")).toThrow("tier is no label: write key=value");
  expect(() => labelsOf("=gold")).toThrow("write key=value");
});

test("no name breaks out of its word", () => {
  expect(word("a; rm -rf /")).toBe("'a; rm -rf /'");
  expect(word("it's $(x)")).toBe("'it'\\''s $(x)'");
});
