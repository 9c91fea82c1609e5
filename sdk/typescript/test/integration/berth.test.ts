// Runs against a real control plane, which services/e2e starts: BERTH_URL and
// BERTH_TOKEN say where it is. BERTH_TEST_CONFIG is a config of the app "probe"
// whose builds have just begun.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, test } from "node:test";
import { Berth, fromEnvironment, ok, Problem, type Schemas } from "@berth/client";

const options = fromEnvironment(process.env);
const berth = new Berth(options);
const apps = ["ts-a", "ts-b", "ts-c", "ts-d", "ts-e"];

async function names(list: AsyncIterable<{ name: string }>): Promise<string[]> {
  const all: string[] = [];
  for await (const { name } of list) all.push(name);
  return all;
}

async function refusal(call: Promise<unknown>): Promise<Problem> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error;
  }
  assert.fail("it was not refused");
}

before(async () => {
  for (const name of apps) await berth.POST("/apps", { body: { name } });
});

test("the caller is known", async () => {
  const me: Schemas["Me"] = await ok(berth.GET("/me"));
  assert.ok(me.org.id.startsWith("org"), JSON.stringify(me));
  const stranger = new Berth({ ...options, token: "brt_nobody" });
  const problem = await refusal(stranger.GET("/me"));
  assert.deepEqual([problem.status, problem.code], [401, "unauthenticated"]);
});

test("a POST that is repeated with its key does nothing twice", async () => {
  const header = { "Idempotency-Key": randomUUID() };
  const body = { name: "ts-once" };
  const first = await ok(berth.POST("/apps", { body, params: { header } }));
  const again = await ok(berth.POST("/apps", { body, params: { header } }));
  assert.equal(again.id, first.id);
  assert.deepEqual([(await refusal(berth.POST("/apps", { body: { name: "ts-other" }, params: { header } }))).status], [409]);
  const twice = await refusal(berth.POST("/apps", { body })); // a key of its own
  assert.deepEqual([twice.status, twice.code], [409, "already_exists"]);
  assert.equal((await names(berth.list("/apps"))).filter((name) => name === "ts-once").length, 1);
});

test("an answer that gets lost is asked for again with the same key", async () => {
  let lost = 0;
  const unlucky = new Berth({
    ...options,
    fetch: async (request) => {
      const response = await fetch(request);
      if (lost++ > 0) return response;
      await response.arrayBuffer(); // it is done, and nobody hears of it
      throw new TypeError("fetch failed");
    },
  });
  const app = await ok(unlucky.POST("/apps", { body: { name: "ts-lost" } }));
  assert.equal(lost, 2);
  assert.equal((await ok(berth.GET("/apps/{app}", { params: { path: { app: "ts-lost" } } }))).id, app.id);
});

test("what is not there is a problem", async () => {
  const problem = await refusal(berth.GET("/installs/{install}", { params: { path: { install: "nowhere" } } }));
  assert.deepEqual([problem.status, problem.code], [404, "not_found"]);
  assert.ok(problem.requestId && problem.detail, JSON.stringify(problem));
});

test("what is wrong has its place", async () => {
  const problem = await refusal(berth.POST("/apps", { body: { name: "Not A Name" } }));
  assert.equal(problem.status, 422);
  assert.equal(problem.errors[0]?.pointer, "/name", JSON.stringify(problem));
});

test("lists are read to their end, in pages of any size", async () => {
  const all = await names(berth.list("/apps"));
  for (const limit of [1, 2, 500]) {
    assert.deepEqual(await names(berth.list("/apps", { query: { limit } })), all);
  }
  assert.deepEqual(apps.filter((name) => !all.includes(name)), []);
  assert.deepEqual(await names(berth.list("/installs", { query: { app: "ts-a" } })), []);
});

test("a sync and a workflow are waited for", { timeout: 180_000 }, async () => {
  const versions: number[] = [];
  const config = await berth.awaitConfig(process.env["BERTH_TEST_CONFIG"] ?? "", {
    until: (c) => {
      versions.push(c.version);
      return false;
    },
  });
  assert.equal(config.state, "released");
  assert.deepEqual([...new Set(versions)].sort((a, b) => a - b), versions, "each version is seen once, in order");

  const install = await ok(
    berth.POST("/installs", {
      body: { name: "ts", app: "probe", customer: "ts", create_customer: true, stack: "local", inputs: { canary: "x" }, provision: true },
    }),
  );
  // Nobody approved it: it gets as far as the first decision.
  const id = install.workflow_id ?? "";
  const proposed = await berth.awaitWorkflow(id, { until: (w) => w.steps?.some((s) => s.change?.state === "proposed") ?? false });
  assert.equal(proposed.finished_at, undefined, proposed.state);

  // One that is over is answered at once.
  await berth.POST("/workflows/{workflow}/cancel", { params: { path: { workflow: id } } });
  const ended = await berth.awaitWorkflow(id);
  assert.equal(ended.state, "cancelled");
  const runs = berth.list("/workflows", { query: { install: "ts" } });
  assert.equal((await runs.next()).value?.id, id);
});
