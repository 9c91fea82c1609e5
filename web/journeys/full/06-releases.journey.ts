// New releases, the way back, and builds.
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { api, axe, berth, close } from "../browser";
import { approveEach, deploy, head, ofInstall, ready, turnPage, watch, well } from "./life";

afterAll(close);

const releaseOf = async () => (await api<{ release: { number: number } }>("GET", "/installs/acme")).release.number;

test("a new release is seen as one behind, compared with the one before, and deployed", async () => {
  await ready("acme");
  await turnPage("second");
  const made = await watch("/installs/acme");
  await deploy(made.page);
  await approveEach(made.page);
  const here = await releaseOf();
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await turnPage("third");
  await head(page)
    .getByText(`↑1 behind r${here + 1}`)
    .waitFor();
  const app = await watch(`/apps/hello?tab=releases`);
  await app.page.getByRole("link", { name: "What changed" }).first().click();
  await app.page
    .getByRole("region", { name: `From r${here} to r${here + 1}` })
    .getByText("third")
    .first()
    .waitFor();
  await deploy(page);
  await approveEach(page);
  expect(await releaseOf()).toBe(here + 1);
  expect(await readFile(await ofInstall("acme", "journal.txt"), "utf8")).toBe("third\n");
  await head(page).getByRole("link", { name: "acme" }).click();
  await head(page).getByText("(newest)").waitFor();
  await well(made);
  await well(app);
  await well(seen);
});

test("it goes back to the release before, by a button and an approval", async () => {
  await ready("acme");
  const from = await releaseOf();
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await page.getByRole("button", { name: "Roll back…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("To").selectOption(`r${from - 1}`);
  await dialog.getByText(`berth rollback acme --to ${from - 1}`).waitFor();
  await dialog.getByRole("button", { name: "Roll back" }).click();
  await page.waitForURL("**/workflows/*");
  await approveEach(page);
  expect(await releaseOf()).toBe(from - 1);
  await head(page).getByRole("link", { name: "acme" }).click();
  await head(page).getByText(`↑1 behind r${from}`).waitFor();
  await well(seen);
});

test("a deploy is only planned, shown, and changes nothing", async () => {
  await ready("acme");
  const before = await releaseOf();
  await turnPage("planned");
  const seen = await watch("/installs/acme");
  const { page } = seen;
  await page.getByRole("button", { name: "Deploy…" }).click();
  await page
    .getByRole("dialog")
    .getByRole("checkbox", { name: /^Plan only/ })
    .check();
  await page
    .getByRole("dialog")
    .getByRole("button", { name: /^Plan r/ })
    .click();
  await page.waitForURL("**/workflows/*");
  await head(page).getByText("plans only").waitFor();
  await head(page).getByText("succeeded", { exact: true }).waitFor();
  expect(await releaseOf()).toBe(before);
  await well(seen);
});

test("all components are built again by a button; nothing changed, so all are reused and no release is made", async () => {
  await ready("acme");
  const seen = await watch("/apps/hello?tab=builds");
  const { page } = seen;
  const builds = page.getByRole("region", { name: "Builds" }).getByRole("row");
  const before = await builds.count();
  const { release } = await api<{ release: { number: number } }>("GET", "/apps/hello");
  await page.getByRole("button", { name: "Build again…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Build all components" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await expect.poll(() => builds.count()).toBe(Math.min(before + 6, 51)); // 50 on a page, below its head
  for (const line of [1, 2, 3, 4, 5, 6]) await builds.nth(line).getByText("reused: nothing changed").waitFor();
  await head(page).getByText(`newest release r${release.number}`).waitFor();
  await well(seen);
});

test("a config is released by a button, which makes nothing when its release is there already", async () => {
  await ready("acme");
  const seen = await watch("/apps/hello");
  const { page } = seen;
  const { release } = await api<{ release: { number: number } }>("GET", "/apps/hello");
  await page.getByRole("button", { name: "Release…" }).click();
  await page
    .getByRole("dialog")
    .getByRole("button", { name: /^Release config/ })
    .click();
  await page.waitForURL("**tab=releases");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Releases" }).getByText(`r${release.number}`, { exact: true }).waitFor();
  expect((await api<{ release: { number: number } }>("GET", "/apps/hello")).release.number).toBe(release.number);
  await well(seen);
});

test("a release is signed, and revoked, by the commands of its page, which says so at once", async () => {
  await ready("acme");
  const { release } = await api<{ release: { number: number } }>("GET", "/apps/hello");
  const list = await watch("/apps/hello?tab=releases");
  await list.page.getByRole("link", { name: `r${release.number}`, exact: true }).click();
  const { page } = list;
  await head(page).getByText("not signed", { exact: true }).waitFor();
  const key = join(await mkdtemp(join(tmpdir(), "vendor-")), "vendor.key");
  await berth("releases", "keygen", key);
  // What the page says is typed as it is, but for the file of the key and the reason.
  const type = async (button: string) => {
    await page.getByRole("button", { name: button }).click();
    const dialog = page.getByRole("dialog");
    const line = await dialog.locator("code").innerText();
    await axe(page);
    await dialog.getByRole("button", { name: "Close" }).click();
    const words = line.split(" ").map((w) => (w === "FILE" ? key : w === "TEXT" ? "it loses data" : w));
    await berth(...words.slice(1));
  };
  await type("Sign…");
  await head(page).getByText("signed", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Signatures" }).getByText("Runners verify signatures").waitFor();
  await type("Revoke…");
  await head(page).getByText("revoked", { exact: true }).waitFor();
  await page.getByRole("status").getByText("it loses data").waitFor();
  await axe(page);
  await page.goBack();
  await page.getByRole("region", { name: "Releases" }).getByText("revoked", { exact: true }).first().waitFor();
  await well(list);
});
