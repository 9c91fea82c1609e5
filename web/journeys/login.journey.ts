import { afterAll, expect, test } from "vitest";
import { axe, berth, close, logIn, url, visit } from "./browser";

afterAll(close);

test("a stranger is led to the login and back to where they wanted to go", async () => {
  const { page, wrong } = await visit("/runners", { stranger: true });
  await page.getByRole("heading", { name: "Log in to Berth" }).waitFor();
  await axe(page);
  await page.getByLabel("or a token").fill("brt_" + "x".repeat(43));
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("or a token").fill(process.env["BERTH_TOKEN"]!);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.waitForURL("**/ui/runners");
  expect(wrong).toEqual([]);
});

test("the link of the command line logs in once, and leaves the address", async () => {
  const link = /http\S+#\S+/.exec(await berth("ui", "--print"))?.[0];
  expect(link).toBeTruthy();
  const { page, wrong } = await visit("/login", { stranger: true });
  await page.goto("about:blank");
  await page.goto(link!);
  await page.getByRole("navigation", { name: "Places" }).waitFor();
  expect(page.url()).not.toContain("#");
  const cookies = await page.context().cookies();
  expect(cookies.map((c) => [c.httpOnly, c.sameSite, c.path])).toEqual([[true, "Strict", "/"]]);
  expect(await page.evaluate(() => document.cookie)).toBe("");
  expect(wrong).toEqual([]);

  const again = await visit("/login", { stranger: true });
  await again.page.goto("about:blank");
  await again.page.goto(link!);
  await again.page.getByRole("alert").waitFor();
});

test("log out ends the session for all tabs", async () => {
  const { page, context } = await visit("/", { own: true });
  const other = await context.newPage();
  await other.goto(url + "/ui/runners");
  await other.getByRole("navigation", { name: "Places" }).waitFor();
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in to Berth" }).waitFor();
  await other.reload();
  await other.getByRole("heading", { name: "Log in to Berth" }).waitFor();
  await logIn(page);
});
