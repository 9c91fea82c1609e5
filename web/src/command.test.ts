import { expect, test } from "vitest";
import { bulkCommand, createCommand, deployCommand, rollbackCommand, runCommand, word } from "./command";

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
  expect(runCommand("acme", "restart", { version: "2" })).toBe("berth actions run acme restart --input version=2");
});

test("no name breaks out of its word", () => {
  expect(word("a; rm -rf /")).toBe("'a; rm -rf /'");
  expect(word("it's $(x)")).toBe("'it'\\''s $(x)'");
});
