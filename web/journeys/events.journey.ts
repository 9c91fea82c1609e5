// What events cost: how soon one is on the screen, what a cut stream loses, what a hundred
// open tabs cost the control plane, and how much a tab grows under them. BERTH_LONG takes
// the times that are promised; without it they are shorter.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { api, close, settled, stage, token, url, visit } from "./browser";
import { atMost, say, spread, within } from "./measured";

afterAll(close);

const long = Boolean(process.env["BERTH_LONG"]);

interface EventPage {
  items: { seq: number }[];
  position: number;
  more: boolean;
}

/** Gives the install another label, which is an event. */
const happen = (label: string) => api("PATCH", "/installs/acme", { labels: { seen: label } });

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The numbers of the events after one, as the control plane has them. */
async function numbered(after: number): Promise<number[]> {
  const seqs: number[] = [];
  for (let at = after; ;) {
    const page = await api<EventPage>("GET", `/events?after=${at}&limit=500`);
    seqs.push(...page.items.map((e) => e.seq));
    if (!page.more) return seqs;
    at = page.position;
  }
}

test("an event is on the screen soon after it happened", async () => {
  const { page } = await visit("/installs/acme");
  await page.getByText("live", { exact: true }).waitFor();
  await settled(page);
  const fromRequest: number[] = [];
  const fromAnswer: number[] = [];
  for (let i = 0; i < (long ? 20 : 12); i++) {
    const label = `v${i}-${Date.now()}`;
    const began = Date.now();
    const answered = happen(label).then(() => Date.now());
    await page.getByText(`seen=${label}`).waitFor();
    fromRequest.push(Date.now() - began);
    fromAnswer.push(Math.max(0, Date.now() - (await answered)));
    await wait(500); // each in rest
  }
  const { median, p95 } = spread(fromAnswer);
  say(`an event on the screen, from the answer that said it was done: half within ${median} ms, 95 of 100 within ${p95} ms`);
  within("an event on the screen, from the request that caused it, 95 of 100", spread(fromRequest).p95, 250);
});

test("a stream that is cut loses nothing and tells nothing twice", async () => {
  const cut = long ? 300_000 : 6_000;
  const { page, wrong } = await visit("/installs/acme");
  await page.getByText("live", { exact: true }).waitFor();
  // The tab that reads the stream tells all others; this is one of them.
  await page.evaluate(() => {
    const seen: number[] = [];
    Object.defineProperty(window, "seen", { value: seen });
    new BroadcastChannel("berth.events").addEventListener(
      "message",
      ({ data }: MessageEvent<{ say: string; events?: { seq: number }[] }>) => {
        if (data.say === "events") seen.push(...data.events!.map((e) => e.seq));
        if (data.say === "lost") seen.push(-1);
      },
    );
  });
  const seen = () => page.evaluate(() => (window as unknown as { seen: number[] }).seen);
  await happen(`before-${Date.now()}`);
  await expect.poll(async () => (await seen()).length, { timeout: 20_000 }).toBeGreaterThan(0);
  const first = (await seen())[0]!;

  await page.route(/\/events\?/, (route) => route.abort());
  await stage("kill/ctl-api"); // breaks the stream; its supervisor starts it again
  await page.getByText(/^stale since/).waitFor();
  await expect
    .poll(
      () =>
        api("GET", "/me").then(
          () => true,
          () => false,
        ),
      { timeout: 30_000 },
    )
    .toBe(true);
  const until = Date.now() + cut;
  let caused = 0;
  let label = "";
  do {
    await happen((label = `cut-${caused++}-${Date.now()}`));
    await wait(Math.min(1_000, cut / 20)); // events happen all the time that it is cut
  } while (Date.now() < until);
  const last = (await numbered(first)).at(-1)!;
  expect(Math.max(...(await seen()))).toBeLessThan(last);
  await page.unroute(/\/events\?/);

  await page.getByText("live", { exact: true }).waitFor();
  await page.getByText(`seen=${label}`).waitFor();
  await expect.poll(async () => Math.max(...(await seen())), { timeout: 20_000 }).toBeGreaterThanOrEqual(last);
  const expected = (await numbered(first - 1)).filter((seq) => seq <= last);
  expect((await seen()).filter((seq) => seq <= last)).toEqual(expected);
  say(
    `a stream cut for ${Math.round(cut / 1000)} s of 300: ${expected.length} events, ${caused} of them caused meanwhile; each told once, in order`,
  );
  expect(wrong).toEqual([]);
}, 600_000);

/** The process that listens where the control plane does. */
function controlPlane(): number {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, "0");
  const inodes = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) =>
    readFileSync(file, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter((f) => f[1]?.endsWith(`:${port}`) && f[3] === "0A")
      .map((f) => `socket:[${f[9]}]`),
  );
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readdirSync(`/proc/${pid}/fd`).some((fd) => inodes.includes(readlinkSync(`/proc/${pid}/fd/${fd}`)))) return Number(pid);
    } catch {
      // Another's, or over.
    }
  }
  throw new Error(`nobody listens on port ${port}`);
}

/** The share of a core that a process takes in a while, in percent. */
async function share(pid: number, ms: number): Promise<number> {
  const ticks = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ");
    return Number(fields[11]) + Number(fields[12]); // of 10 ms, its own and the kernel's for it
  };
  const [before, began] = [ticks(), Date.now()];
  await wait(ms);
  return ((ticks() - before) * 10 * 100) / (Date.now() - began);
}

// Plain clients stand for the tabs: each holds the one stream that a browser has.
test("a hundred open tabs cost the control plane little", async () => {
  const pid = controlPlane();
  const lasting = long ? 60_000 : 4_000;
  const alone = await share(pid, lasting);
  const end = new AbortController();
  const streams = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const answer = await fetch(`${url}/events?follow=true&from_now=true`, {
        headers: { Authorization: `Bearer ${token}`, Accept: "text/event-stream" },
        signal: end.signal,
      });
      expect(answer.ok, String(answer.status)).toBe(true);
      let bytes = 0;
      const read = (async () => {
        for (const chunks = answer.body!.getReader(); ;) {
          const { done, value } = await chunks.read();
          if (done) return;
          bytes += value.length;
        }
      })().catch(() => undefined); // ended below
      return { read, bytes: () => bytes };
    }),
  );
  const together = await share(pid, lasting);
  expect(streams.every((s) => s.bytes() > 0)).toBe(true); // each was told where it stands
  say(
    `the control plane alone takes ${alone.toFixed(1)} % of a core, with 100 streams ${together.toFixed(1)} %, in ${lasting / 1000} s each`,
  );
  atMost("100 open tabs cost the control plane", together - alone, 5, " % of a core");
  const label = `all-${Date.now()}`;
  const before = streams.map((s) => s.bytes());
  await happen(label);
  await expect.poll(() => streams.every((s, i) => s.bytes() > before[i]!), { timeout: 20_000 }).toBe(true);
  end.abort();
  await Promise.all(streams.map((s) => s.read));
}, 300_000);

/** The heap of a page after everything that nobody holds is gone, in MB. */
async function kept(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  for (let i = 0; i < 3; i++) await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize / 1e6;
}

test("a tab under the events of an hour does not grow", async () => {
  const events = long ? 3_600 : 200;
  const { page, wrong } = await visit("/installs/acme");
  await page.getByText("live", { exact: true }).waitFor();
  await settled(page);
  const cause = async (count: number) => {
    let label = "";
    for (let i = 0; i < count; i++) await happen((label = `h${i}-${Date.now()}`));
    await page.getByText(`seen=${label}`).waitFor();
  };
  await cause(20); // what is made once is there
  const before = await kept(page);
  const began = Date.now();
  await cause(events);
  const after = await kept(page);
  say(
    `a tab under ${events} events of 3600, in ${Math.round((Date.now() - began) / 1000)} s: from ${before.toFixed(1)} to ${after.toFixed(1)} MB`,
  );
  atMost("a tab grows", after - before, 20, " MB");
  expect(wrong).toEqual([]);
}, 900_000);
