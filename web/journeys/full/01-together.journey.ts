// Several changes of one workflow in one decision.
import { afterAll, expect, test } from "vitest";
import { api, axe, berth, close } from "../browser";
import { app, approveEach, sync, watch, well } from "./life";

afterAll(close);

interface Change {
  id: string;
  state: string;
  effect_digest: string;
  resource?: { name: string };
}

const proposals = async (workflow: string) => (await api<{ items: Change[] }>("GET", `/changes?workflow=${workflow}&state=proposed`)).items;

test("what was looked at is approved together, and nothing else", async () => {
  expect(app).not.toBe("");
  if ((await api<{ items: unknown[] }>("GET", "/apps")).items.length === 0) await sync("As it began");
  const made = await api<{ workflow_id: string }>("POST", "/installs", {
    name: "pair",
    app: "hello",
    customer: "pair",
    create_customer: true,
    stack: "local",
    provision: true,
  });
  // What comes alone is approved at the command line, until three wait at once.
  let waiting: Change[] = [];
  await expect
    .poll(
      async () => {
        waiting = await proposals(made.workflow_id);
        const alone = waiting.find((c) => !c.resource || c.resource.name === "sandbox");
        if (alone) await berth("approve", alone.id, "--auto-approve");
        return alone ? 0 : waiting.length;
      },
      { timeout: 120_000, interval: 1_000 },
    )
    .toBeGreaterThanOrEqual(3);
  const [first, second, third] = waiting as [Change, Change, Change];

  const seen = await watch(`/changes/${first.id}`);
  const { page } = seen;
  const approve = page.getByRole("button", { name: "Approve change", disabled: false });
  const dialog = page.getByRole("dialog");
  await approve.click();
  const other = (c: Change) => dialog.getByRole("checkbox", { name: new RegExp(`^${c.resource!.name} `) });
  await other(second).waitFor();
  expect(await other(second).isDisabled()).toBe(true);
  expect(await other(third).isDisabled()).toBe(true);

  // From the dialog to the second, and back to the first.
  await dialog.locator("fieldset > div").filter({ hasText: second.resource!.name }).getByRole("link", { name: "look at it first" }).click();
  await page.waitForURL(`**/changes/${second.id}`);
  await page.getByText(second.effect_digest).first().waitFor();
  await approve.waitFor();
  await page.goBack();
  await page.waitForURL(`**/changes/${first.id}`);
  await approve.click();
  await other(second).check();
  expect(await other(third).isDisabled()).toBe(true);
  await dialog.getByText(second.effect_digest).waitFor();
  await dialog.getByText(`berth approve ${first.id} && berth approve ${second.id}`).waitFor();
  await axe(page);
  await dialog.getByRole("button", { name: "Approve 2 changes" }).click();
  await dialog.waitFor({ state: "detached" });
  for (const { id, effect_digest } of [first, second]) {
    const { decisions } = await api<{ decisions: { answer: string; effect_digest: string }[] }>("GET", `/changes/${id}`);
    expect(decisions.map((d) => [d.answer, d.effect_digest])).toEqual([["approve", effect_digest]]);
  }
  expect((await proposals(made.workflow_id)).map((c) => c.id)).toContain(third.id);

  await page.getByRole("link", { name: "Follow its workflow" }).click();
  await approveEach(page);
  await well(seen);
}, 400_000);
