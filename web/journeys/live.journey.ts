import { afterAll, expect, test } from "vitest";
import { close, stage, url, visit } from "./browser";

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
