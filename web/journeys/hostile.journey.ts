// What people outside write is text on every page: no script runs, nothing is asked of
// anybody else, and no name passes for a part of the page.
import { afterAll, expect, test } from "vitest";
import { api, close, settled, url, visit } from "./browser";

afterAll(close);

const texts = [
  `<img src=x onerror="window.pwned=1">`,
  `<script>window.pwned=1</script>`,
  `"><svg onload=window.pwned=1>`,
  `javascript:window.pwned=1`,
  `</title><script>window.pwned=1</script>`,
  "\u202egnp.exe\u202c",
  "\u001b[31mred\u001b[0m",
  "{{constructor.constructor('window.pwned=1')()}}",
  "x".repeat(128),
];

test("names and labels of customers and tokens are inert", async () => {
  for (const [i, text] of texts.entries()) {
    await api("POST", "/customers", { name: `c${i}`, labels: { note: text.slice(0, 60) } }).catch(() => undefined); // some are refused, which is right
    await api("POST", "/tokens", { name: text.slice(0, 120) }).catch(() => undefined);
  }
  for (const path of ["/settings/customers", "/settings/tokens", "/settings/chain", "/"]) {
    const { page, wrong, context } = await visit(path);
    await settled(page);
    expect(await page.evaluate(() => (window as { pwned?: number }).pwned)).toBeUndefined();
    expect(wrong).toEqual([]);
    await context.close();
  }
});

test("addresses with hostile parts are inert", async () => {
  const { page, wrong } = await visit("/");
  for (const text of texts.slice(0, 6)) {
    for (const path of [
      `/installs/${encodeURIComponent(text)}`,
      `/changes/${encodeURIComponent(text)}`,
      `/installs?q=${encodeURIComponent(text)}`,
      `/login?to=${encodeURIComponent(text)}`,
    ]) {
      await page.goto(url + "/ui" + path);
      await settled(page);
      expect(await page.evaluate(() => (window as { pwned?: number }).pwned)).toBeUndefined();
    }
  }
  expect(wrong).toEqual([]);
});

test("a page is in no frame, and takes no script that is injected", async () => {
  const answer = await fetch(url + "/ui/");
  expect(answer.headers.get("X-Frame-Options")).toBe("DENY");
  expect(answer.headers.get("Content-Security-Policy")).toContain("frame-ancestors 'none'");
  const { page } = await visit("/");
  await settled(page);
  const outcome = await page.evaluate(() => {
    const tries: Record<string, () => void> = {
      html: () => (document.body.innerHTML = "<b>x</b>"),
      write: () => document.write("<b>x</b>"),
      frame: () => (document.createElement("iframe").srcdoc = "<b>x</b>"),
      url: () => (document.createElement("script").src = "https://example.com/x.js"),
      text: () => (document.createElement("script").textContent = "window.pwned = 1"),
      policy: () =>
        void (window as unknown as { trustedTypes: { createPolicy: (name: string, rules: object) => void } }).trustedTypes.createPolicy(
          "mine",
          { createHTML: (s: string) => s },
        ),
    };
    return Object.entries(tries)
      .filter(([, act]) => {
        try {
          act();
          return true;
        } catch {
          return false;
        }
      })
      .map(([name]) => name);
  });
  expect(outcome).toEqual([]);
});
