import { afterAll, expect, test } from "vitest";
import { api, close, stage, url, visit } from "./browser";

afterAll(close);

test("a page says when the control plane is away, and goes on when it is back", async () => {
  const { page, wrong } = await visit("/");
  await page.getByText("live", { exact: true }).waitFor();
  await stage("kill/ctl-api"); // its supervisor starts it again
  await page.getByText(/^stale since/).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  expect(wrong).toEqual([]);
});

test("two tabs share one stream, and the second goes on when the first closes", async () => {
  const { page, context } = await visit("/");
  await page.getByText("live", { exact: true }).waitFor();
  const second = await context.newPage();
  const streams: string[] = [];
  second.on("request", (r) => r.url().startsWith(url + "/events") && streams.push(r.url()));
  await second.goto(url + "/ui/");
  await second.getByText("live", { exact: true }).waitFor();
  expect(streams).toEqual([]);
  await page.close();
  await expect.poll(() => streams.length).toBe(1);
  await second.getByText("live", { exact: true }).waitFor();
});

test("code that is asked for while the control plane is away comes when it is back, and the rest of the page stays", async () => {
  const { page, wrong } = await visit("/nowhere");
  await page.route(/Canvas-/, (route) => route.abort());
  await page.goto(`${url}/ui/installs/acme`);
  await page.getByRole("list", { name: "Resources of acme" }).waitFor();
  await api("PATCH", "/installs/acme", { labels: { seen: "without-its-picture" } });
  await page.getByText("seen=without-its-picture").waitFor();
  expect(await page.locator(".react-flow").count()).toBe(0);
  await page.unroute(/Canvas-/);
  await page.locator(".react-flow").waitFor();
  expect(wrong).toEqual([]);
});

test("a page of an earlier release says so when it needs files that are gone", async () => {
  const { page } = await visit("/nowhere");
  await page.route(/Canvas-/, (route) => route.fulfill({ status: 404 }));
  await page.goto(`${url}/ui/installs/acme`);
  await page.locator("main").first().waitFor();
  await page.route(/\/ui\/$/, (route) =>
    route.fulfill({ contentType: "text/html", body: '<script type="module" src="/ui/assets/index-new.js">' }),
  );
  await page.getByText("Berth was upgraded since this page was opened").waitFor();
  await page.unrouteAll();
  await page.getByRole("button", { name: "Load the page again" }).click();
  await page.locator(".react-flow").waitFor();
});
