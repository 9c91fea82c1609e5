// From nothing to a healthy install, without one reload.
import { afterAll, expect, test } from "vitest";
import { axe, berth, close, settled, visit } from "../browser";
import { app, approveEach, head, watch, well } from "./life";

afterAll(close);

test("the first login, by the link that berth ui prints", async () => {
  const link = /http\S+#\S+/.exec(await berth("ui", "--print"))?.[0];
  const { page, wrong, context } = await visit("/login", { stranger: true });
  await page.goto("about:blank");
  await page.goto(link!);
  await page.getByText("Nothing waits for you and nothing is wrong.").waitFor();
  await axe(page);
  expect(wrong).toEqual([]);
  await context.close();
});

test("the first app appears while one looks, after the command that the page shows", async () => {
  const seen = await watch("/apps");
  await seen.page
    .getByText(/^berth sync/)
    .first()
    .waitFor();
  await axe(seen.page);
  await berth("sync", app, "--app", "hello", "--wait", "--timeout", "4m", "-m", "As it began");
  await seen.page.getByRole("link", { name: "hello" }).first().waitFor();
  await well(seen);
});

test("the first install is made on the page, and provisioned by approving each change", async () => {
  const seen = await watch("/installs");
  const { page } = seen;
  await page.getByRole("button", { name: "New install…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("acme");
  await dialog.getByLabel("Greeting").fill("Ship ahoy");
  await dialog.getByText("berth installs create acme --app hello --input 'greeting=Ship ahoy'").waitFor();
  await axe(page);
  await dialog.getByRole("button", { name: "Create install" }).click();
  await page.waitForURL("**/workflows/*");
  expect(await approveEach(page)).toBeGreaterThanOrEqual(6); // scripts, sandbox, five components
  await well(seen);
});

test("it becomes healthy while one looks at it", async () => {
  const seen = await watch("/installs/acme");
  await head(seen.page).getByText("healthy", { exact: true }).waitFor({ timeout: 150_000 });
  await seen.page.getByText("5 of 5 components on r1").waitFor();
  await well(seen);
});

test("its README has its own values", async () => {
  const { page, wrong, context } = await visit("/installs/acme?tab=readme");
  await settled(page);
  await page.getByRole("heading", { name: "Hello, acme" }).waitFor();
  await page.getByText("Ship ahoy, sailor!").first().waitFor();
  expect(wrong).toEqual([]);
  await context.close();
});
