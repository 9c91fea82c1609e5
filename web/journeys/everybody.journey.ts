// Every page is for everybody in every state that it can be in: empty, being read, failed,
// not allowed and huge, in both themes. BERTH_LONG looks at all of them; without it, at a
// slice that BERTH_SEED chooses.
import type { Page, Route } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { asked, axe, close, rewrite, seed, settled, url, visit } from "./browser";
import { fleet, graphOf, numbers, pages, planOf, serveLog } from "./made/large";
import { say } from "./measured";
import { places } from "./places";

afterAll(close);

const long = Boolean(process.env["BERTH_LONG"]);

type Body = Record<string, unknown> & { items?: Record<string, unknown>[] };

/** Has the control plane give other answers than its own. */
function change(page: Page, into: (body: Body, path: string) => unknown) {
  return page.route(asked, async (route) => {
    await rewrite(route, (body) => into(body as Body, new URL(route.request().url()).pathname));
  });
}

const problem = (status: number, detail: string) => (route: Route) =>
  route.fulfill({
    status,
    contentType: "application/problem+json",
    json: { title: "no", status, detail, remedy: "ask an admin of your org", request_id: "req_" + "0".repeat(26) },
  });

/** A list with very many things, whose names are as long as names may be. */
function many(body: Body): unknown {
  if (!body.items?.length) return body;
  const long = (text: unknown) => (typeof text === "string" ? text.padEnd(80, "-and-so-on") : text);
  const items = Array.from({ length: 200 }, (_, i) => {
    const item = body.items![i % body.items!.length]!;
    return {
      ...item,
      ...("id" in item ? { id: `${String(item["id"])}${i}` } : {}),
      ...("name" in item ? { name: long(`${String(item["name"])}${i}`) } : {}),
    };
  });
  return { ...body, items };
}

const states: Record<string, (page: Page) => Promise<unknown>> = {
  empty: (page) => change(page, (body) => (body.items ? { ...body, items: [], next: undefined } : body)),
  loading: (page) => page.route(asked, () => undefined), // it never answers
  failed: (page) => page.route(asked, problem(500, "internal error")),
  "not allowed": (page) => page.route(asked, problem(403, "this needs the role admin")),
  huge: async (page) => {
    const { installs, resources } = fleet(1000);
    await change(page, many);
    await page.route(/\/status(\?|$)/, (route) =>
      new URL(route.request().url()).pathname === "/status" ? pages(installs)(route) : route.fallback(),
    );
    await page.route(/\/resources\?/, (route) =>
      new URL(route.request().url()).pathname === "/resources" ? pages(resources)(route) : route.fallback(),
    );
    await page.route("**/plan/tree", (route) => route.fulfill({ json: planOf("chg_made", 10_000) }));
    await page.route(/\/(installs|configs|apps)\/[^/]+\/graph/, (route) => route.fulfill({ json: graphOf(300) }));
    await serveLog(page, "str_made", 1_000_000, (seq) => `\u001b[3${seq % 8}mline ${seq} of the log`);
  },
};

/** Waits until a page shows the state that it is in. */
async function shows(page: Page, state: string): Promise<void> {
  const marks = page.getByRole("status", { name: "Loading" }).or(page.getByRole("alert"));
  if (state === "loading" || state === "failed" || state === "not allowed") {
    // A page that asks for nothing has nothing to say.
    await marks
      .or(page.getByText("lines come as they are written"))
      .or(page.locator("main h1, main form, main p"))
      .first()
      .waitFor({ state: "attached" });
  } else {
    await settled(page);
  }
}

const names = Object.keys(states);
const all = (await places()).flatMap((place) => names.flatMap((state) => [false, true].map((dark) => ({ path: place.path, state, dark }))));

/** Some of them, each state as often as the others. */
function slice(count: number): typeof all {
  const next = numbers(seed);
  return Array.from({ length: count }, (_, i) => {
    const fitting = all.filter((c) => c.state === names[i % names.length]);
    return fitting[Math.floor(next() * fitting.length)]!;
  });
}

const chosen = long ? all : slice(10);
say(`states of pages looked at: ${chosen.length} of ${all.length}${long ? "" : `, seed ${seed}`}`);

test.each(chosen)("$path, $state, dark $dark", async ({ path, state, dark }) => {
  const { page, context, wrong } = await visit("/nowhere", { dark });
  await states[state]!(page);
  await page.goto(`${url}/ui${path}`);
  await shows(page, state);
  await axe(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(wide, "wider than the screen").toBeLessThanOrEqual(0);
  expect(wrong).toEqual([]);
  await context.close();
});

test("nothing moves for who asked for that", async () => {
  const { page, context } = await visit("/");
  await page.emulateMedia({ reducedMotion: "reduce" });
  for (const { path } of long ? await places() : (await places()).filter((_, i) => i % 6 === 0)) {
    await page.goto(`${url}/ui${path}`);
    await settled(page);
    const moving = await page.evaluate(() => {
      const lasts = (times: string) => times.split(",").some((t) => parseFloat(t) > 0);
      return [
        ...document.getAnimations().map((a) => `an animation of ${(a.effect as KeyframeEffect | null)?.target?.className ?? ""}`),
        ...[...document.querySelectorAll("*")]
          .filter((e) => {
            const style = getComputedStyle(e);
            return lasts(style.transitionDuration) || (style.animationName !== "none" && lasts(style.animationDuration));
          })
          .map((e) => e.outerHTML.slice(0, 120)),
      ];
    });
    expect(moving, path).toEqual([]);
  }
  await context.close();
});

test("the focus is seen wherever it goes", async () => {
  const { page, context } = await visit("/");
  for (const path of ["/", "/installs", "/installs/acme", "/settings/tokens"]) {
    await page.goto(`${url}/ui${path}`);
    await settled(page);
    const unseen: string[] = [];
    for (let i = 0; i < 25; i++) {
      await page.keyboard.press("Tab");
      const wrong = await page.evaluate(() => {
        const at = document.activeElement;
        if (!at || at === document.body) return;
        const { outlineStyle, outlineWidth } = getComputedStyle(at);
        const box = at.getBoundingClientRect();
        if (outlineStyle === "none" || parseFloat(outlineWidth) < 2) return `no ring: ${at.outerHTML.slice(0, 120)}`;
        if (box.width === 0 || box.height === 0) return `no size: ${at.outerHTML.slice(0, 120)}`;
        return;
      });
      if (wrong) unseen.push(wrong);
    }
    expect(unseen, path).toEqual([]);
  }
  await context.close();
});

test("a graph is said as well as drawn", async () => {
  const graph = graphOf(60);
  const { page, context } = await visit("/");
  await page.route("**/installs/acme/graph", (route) => route.fulfill({ json: graph }));
  await page.goto(`${url}/ui/installs/acme`);
  const nodes = page.getByRole("application", { name: "Resources of acme" }).locator("[data-box]");
  await nodes.first().waitFor();
  const labels = await nodes.evaluateAll((all) => all.map((n) => n.getAttribute("aria-label") ?? (n as HTMLElement).innerText));
  expect(labels.length).toBe(60);
  for (const [i, label] of labels.entries()) expect(label).toMatch(new RegExp(`^${graph.nodes[i]!.name}(: |\\s+)(un)?healthy`));
  const lines = page.getByRole("list", { name: "Resources of acme" }).getByRole("listitem");
  expect(await lines.count()).toBe(60);
  const said = await lines.allTextContents();
  for (const { from, to } of graph.edges) expect(said[graph.nodes.findIndex((n) => n.name === from)]).toContain(`needs ${to}`);
  await context.close();
});
