import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { api, axe, berth, close, settled, visit } from "./browser";

afterAll(close);

interface Change {
  id: string;
  state: string;
  effect_digest: string;
  resource?: { name: string };
  decisions: { answer: string; effect_digest: string; note?: string }[];
}

/** The change of a component that waits for a decision. */
async function proposed(component: string): Promise<Change> {
  let found: Change | undefined;
  await expect
    .poll(
      async () =>
        (found = (await api<{ items: Change[] }>("GET", "/changes?state=proposed")).items.find((c) => c.resource?.name === component)),
      {
        timeout: 60_000,
        interval: 500,
      },
    )
    .toBeTruthy();
  return api("GET", `/changes/${found!.id}`);
}

/** Waits until the page lets one decide: it reads the plan and one's rights first. */
async function decidable(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Approve/, disabled: false }).waitFor();
}

test("a change is found, reviewed and approved by keyboard alone", async () => {
  const change = await proposed("one");
  const { page, wrong } = await visit("/");
  await page.getByRole("link", { name: /acme · one/ }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/ui/changes/${change.id}`);
  await settled(page);
  await page.getByText(change.effect_digest).first().waitFor();
  await page.getByText("seen in a browser").first().waitFor();
  await axe(page);
  await decidable(page);
  await page.keyboard.press("a");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await axe(page);
  await dialog.getByRole("button", { name: /^Approve/ }).focus();
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await expect
    .poll(async () => (await api<Change>("GET", `/changes/${change.id}`)).decisions.map((d) => [d.answer, d.effect_digest]))
    .toEqual([
      ["approve", change.effect_digest], // what was on the screen
    ]);
  expect(wrong).toEqual([]);
});

test("a change is denied, with a note that stays", async () => {
  const change = await proposed("three"); // it needs one, which was approved
  const { page, wrong } = await visit(`/changes/${change.id}`);
  await settled(page);
  await page.getByLabel("Note to keep with the decision").fill("not on a Friday <b>");
  await page.getByRole("button", { name: /^Deny/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: /^Deny/ }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("not on a Friday <b>").first().waitFor();
  await expect.poll(async () => (await api<Change>("GET", `/changes/${change.id}`)).state).toBe("denied");
  expect(wrong).toEqual([]);
});

test("of two people on one change, the slower one is told at once and cannot decide", async () => {
  await berth("deploy", "acme", "one", "three");
  const change = await proposed("three");
  const slow = await visit(`/changes/${change.id}`);
  await settled(slow.page);
  await decidable(slow.page);
  await slow.page.keyboard.press("a");
  await slow.page.getByRole("dialog").waitFor();
  await api("POST", `/changes/${change.id}/decisions`, { answer: "deny", effect_digest: change.effect_digest });
  await slow.page.getByRole("dialog").waitFor({ state: "detached", timeout: 5_000 });
  await slow.page
    .getByRole("contentinfo", { name: "Decision" })
    .or(slow.page.getByLabel("Decision"))
    .getByText(/denied/)
    .first()
    .waitFor();
  expect(slow.wrong).toEqual([]);
});

test("who may only read is told which role may decide", async () => {
  const made = await api<{ id: string }>("POST", "/members", { name: "vera", kind: "user", role: "viewer" });
  const { secret } = await api<{ secret: string }>("POST", "/tokens", { name: "seen", member: made.id });
  await berth("deploy", "acme", "three");
  const change = await proposed("three");
  const { page, wrong } = await visit("/login", { stranger: true });
  await page.getByLabel("or a token").fill(secret);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByRole("navigation", { name: "Places" }).waitFor();
  await page.goto(page.url().replace(/\/ui\/.*/, `/ui/changes/${change.id}`));
  await settled(page);
  const approve = page.getByRole("button", { name: /^Approve/ });
  await expect.poll(() => approve.getAttribute("aria-disabled")).toBe("true");
  await expect.poll(() => approve.getAttribute("title")).toContain("needs the role"); // it reads the plan and one's rights first
  await page.keyboard.press("a");
  expect(await page.getByRole("dialog").count()).toBe(0);
  expect(wrong).toEqual([]);
});
