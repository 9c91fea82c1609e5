// People, their browsers and tokens, and who is told.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { api, axe, berth, close, logIn, settled, url, visit } from "../browser";
import { ready } from "./life";

afterAll(close);

test("a session is ended from another browser, and that tab is logged out", async () => {
  const first = await visit("/settings/sessions");
  await settled(first.page);
  const other = await visit("/installs", { own: true });
  await settled(other.page);
  await first.page.reload();
  await settled(first.page);
  const rows = first.page.getByRole("group", { name: "Browsers that are logged in" }).getByRole("row");
  const mine = await rows.filter({ hasText: "this browser" }).count();
  expect(mine).toBe(1);
  const newest = rows.filter({ hasNotText: "this browser" }).last(); // the newest
  await newest.getByRole("button", { name: "Log out" }).click();
  await other.page.getByRole("heading", { name: "Log in to Berth" }).waitFor();
  expect(first.wrong).toEqual([]);
  expect(other.wrong).toEqual([]);
  await first.context.close();
  await other.context.close();
});

test("a member is added on the page, logs in, and is removed by name", async () => {
  const { page, wrong, context } = await visit("/settings/members");
  await settled(page);
  await page.getByRole("button", { name: "New member…" }).click();
  const form = page.getByRole("dialog");
  await form.getByRole("button", { name: "Add member" }).waitFor();
  await form.getByLabel(/^Name/).fill("grace");
  await form.getByLabel(/^Email/).fill("grace@example.com");
  await form.getByLabel(/^Role/).selectOption("operator");
  await form.getByText("berth members create grace --role operator --email grace@example.com").waitFor();
  await axe(page);
  await form.getByRole("button", { name: "Add member" }).click();
  await form.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /grace/ }).getByText("operator", { exact: true }).waitFor();

  await page.getByRole("button", { name: "New member…" }).click();
  await form.getByLabel(/^Name/).fill("grace");
  await form.getByRole("button", { name: "Add member" }).click();
  await form.getByRole("alert").getByText("a member with this name already exists").waitFor();
  await form.getByRole("button", { name: "Cancel" }).click();

  const secret = (await berth("tokens", "create", "hers", "--member", "grace")).trim();
  const hers = await visit("/login", { stranger: true });
  await hers.page.getByLabel("or a token").fill(secret);
  await hers.page.getByRole("button", { name: "Log in", exact: true }).click();
  await hers.page.getByRole("button", { name: /^Account of grace/ }).waitFor();

  await page.reload();
  await settled(page);
  await page.getByRole("row", { name: /grace/ }).getByRole("button", { name: "Remove" }).click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByRole("button", { name: "Remove member" }).getAttribute("aria-disabled")).toBe("true");
  await dialog.getByLabel(/to confirm/).fill("grace");
  await dialog.getByRole("button", { name: "Remove member" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /grace/ }).getByText("removed", { exact: true }).waitFor();
  // Her page leaves by itself.
  await hers.page.getByRole("heading", { name: "Log in to Berth" }).waitFor();
  expect(wrong).toEqual([]);
  await context.close();
});

test("a customer is added with labels, by keyboard", async () => {
  const { page, wrong, context } = await visit("/settings/customers");
  await settled(page);
  await page.getByRole("button", { name: "New customer…" }).first().focus();
  await page.keyboard.press("Enter");
  const form = page.getByRole("dialog");
  await form.getByLabel(/^Name/).fill("wonka");
  await form.getByLabel(/^Labels/).fill("gold");
  await form.getByLabel(/^Labels/).press("Enter");
  await form.getByRole("alert").getByText("gold is no label: write key=value").waitFor();
  await form.getByLabel(/^Labels/).fill("tier=gold");
  await form.getByText("berth customers create wonka --label tier=gold").waitFor();
  await form.getByLabel(/^Labels/).press("Enter");
  await form.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /wonka/ }).getByText("tier=gold").waitFor();
  expect(wrong).toEqual([]);
  await context.close();
});

test("a token is revoked by its name, and opens nothing more", async () => {
  const { secret } = await api<{ secret: string }>("POST", "/tokens", { name: "build machine" });
  const { page, wrong, context } = await visit("/settings/tokens");
  await settled(page);
  await page
    .getByRole("row", { name: /build machine/ })
    .getByRole("button", { name: "Revoke" })
    .click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/to confirm/).fill("build machine");
  await dialog.getByRole("button", { name: "Revoke token" }).click();
  await dialog.waitFor({ state: "detached" });
  await page
    .getByRole("row", { name: /build machine/ })
    .getByText("revoked", { exact: true })
    .waitFor();
  expect((await fetch(url + "/me", { headers: { Authorization: `Bearer ${secret}` } })).status).toBe(401);
  expect(wrong).toEqual([]);
  await context.close();
});

test("a webhook is tried by a button, and its delivery with the answer appears", async () => {
  const came: string[] = [];
  const server = createServer((request, answer) => {
    request.resume().on("end", () => {
      came.push(request.method ?? "");
      answer.writeHead(204).end();
    });
  });
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  try {
    const to = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    await berth("webhooks", "create", "pager", "--url", to, "--kind", "alert.opened");
    const { page, wrong, context } = await visit("/settings/webhooks");
    await settled(page);
    await page.getByRole("link", { name: "pager" }).click();
    await page.getByText("Nothing was sent yet.").waitFor();
    await page.getByRole("button", { name: "Send a test" }).click();
    const delivery = page.getByRole("group", { name: "Deliveries" }).getByRole("row").nth(1);
    await delivery.getByText("204").waitFor();
    expect(came).toEqual(["POST"]);
    await page.getByRole("button", { name: "Switch off" }).click();
    await page.getByRole("button", { name: "Switch on" }).waitFor();
    expect(wrong).toEqual([]);
    await context.close();
  } finally {
    server.close();
  }
});

test("alerts of an install are muted with an end and a reason, and the mute is ended by a button", async () => {
  await ready("acme");
  await berth("alerts", "mute", "--install", "acme", "--for", "2h", "--reason", "they move house");
  const { page, wrong, context } = await visit("/settings/alerts");
  await settled(page);
  const row = page.getByRole("row", { name: /they move house/ });
  await row.getByText("in 2 h").waitFor();
  await row.getByRole("button", { name: "End" }).click();
  await expect
    .poll(() =>
      row
        .getByRole("button", { name: "End" })
        .getAttribute("aria-disabled")
        .catch(() => "true"),
    )
    .toBe("true");
  expect(wrong).toEqual([]);
  await context.close();
});

test("somebody who may only read is offered no install, no deploy and no release, with the reason", async () => {
  await ready("acme");
  const made = await api<{ id: string }>("POST", "/members", { name: "vera", kind: "user", role: "viewer" });
  const { secret } = await api<{ secret: string }>("POST", "/tokens", { name: "hers", member: made.id });
  const { page, wrong, context } = await visit("/login", { stranger: true });
  await logIn(page, secret);
  for (const [path, name] of [
    ["/installs", "New install…"],
    ["/installs/acme", "Deploy…"],
    ["/apps/hello", "Release…"],
  ] as const) {
    await page.goto(url + "/ui" + path);
    await settled(page);
    const button = page.getByRole("button", { name });
    expect(await button.getAttribute("aria-disabled")).toBe("true");
    expect(await button.getAttribute("title")).toContain("needs the role");
  }
  expect(wrong).toEqual([]);
  await context.close();
});
