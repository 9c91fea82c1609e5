import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Problem, type Schemas } from "@berth/client";
import { client, failure, reply, service } from "./service.js";

test("a problem is an error with all that the service says", async (t) => {
  const url = await service(t, (_, res) =>
    reply(res, 409, {
      type: "about:blank",
      title: "Conflict",
      status: 409,
      code: "conflict",
      detail: 'install "acme" already exists',
      remedy: "choose another name",
      request_id: "req_1",
      errors: [{ pointer: "/name", message: "is taken" }],
    }),
  );
  const error = await failure(client(url).GET("/me"));
  assert.ok(error instanceof Problem);
  assert.equal(error.message, 'install "acme" already exists (choose another name)');
  const { status, code, detail, remedy, requestId, errors } = error;
  assert.deepEqual({ status, code, detail, remedy, requestId, errors }, {
    status: 409,
    code: "conflict",
    detail: 'install "acme" already exists',
    remedy: "choose another name",
    requestId: "req_1",
    errors: [{ pointer: "/name", message: "is taken" }],
  });
});

test("lists read page after page", async (t) => {
  let asked: string[] = [];
  const url = await service(t, (req, res) => {
    asked.push(req.url ?? "");
    switch (new URL(req.url ?? "", "http://x").searchParams.get("after")) {
      case null:
        return reply(res, 200, { items: [{ name: "a" }, { name: "b" }], next: "n1" });
      case "n1":
        return reply(res, 200, { items: [], next: "n2" });
      case "n2":
        return reply(res, 200, { items: [{ name: "c" }] });
      case "stuck":
        return reply(res, 200, { items: [], next: "stuck" });
      case "odd":
        return reply(res, 200, "");
      default:
        return reply(res, 404, { title: "Not Found", status: 404, code: "not_found" });
    }
  });
  const berth = client(url);
  const names = async (list: AsyncIterable<{ name: string }>, most = Infinity) => {
    const got: string[] = [];
    for await (const { name } of list) {
      if (got.push(name) >= most) break;
    }
    return got;
  };
  assert.deepEqual(await names(berth.list("/installs", { query: { app: "hello", limit: 2 } })), ["a", "b", "c"]);
  assert.deepEqual(asked, ["/installs?limit=2&app=hello", "/installs?limit=2&app=hello&after=n1", "/installs?limit=2&app=hello&after=n2"]);

  asked = [];
  assert.deepEqual(await names(berth.list("/apps/{app}/variables", { path: { app: "hello" } }), 1), ["a"]);
  assert.deepEqual(asked, ["/apps/hello/variables?limit=500"]);

  const gone = await failure(names(berth.list("/apps", { query: { after: "gone" } })));
  assert.equal((gone as Problem).code, "not_found");
  assert.match((await failure(names(berth.list("/apps", { query: { after: "stuck" } })))).message, /does not continue/);
  assert.match((await failure(names(berth.list("/apps", { query: { after: "odd" } })))).message, /does not understand/);

  // Types: not every path is a list, names in the path are needed, filters are known.
  // @ts-expect-error
  void (() => berth.list("/me"));
  // @ts-expect-error
  void (() => berth.list("/chains/{chain}/records", { path: { chain: "org" } }));
  // @ts-expect-error
  void (() => berth.list("/apps/{app}/releases"));
  // @ts-expect-error
  void (() => berth.list("/installs", { query: { colour: "red" } }));
});

test("waiting asks after each version until the end", async (t) => {
  let asked: string[] = [];
  const url = await service(t, (req, res) => {
    asked.push(req.url ?? "");
    const states = ["queued", "running", "waiting", "failed"];
    const version = [0, 3, 5, 9];
    const n = Math.min(asked.length, 4) - 1;
    reply(res, 200, { id: "wfl_1", state: states[n], version: version[n] });
  });
  const berth = client(url);
  const ended: Schemas["Workflow"] = await berth.awaitWorkflow("wfl_1");
  assert.equal(ended.state, "failed");
  assert.deepEqual(asked, [
    "/workflows/wfl_1?after_version=0",
    "/workflows/wfl_1?wait=30s&after_version=0",
    "/workflows/wfl_1?wait=30s&after_version=3",
    "/workflows/wfl_1?wait=30s&after_version=5",
  ]);
  asked = [];
  assert.equal((await berth.awaitWorkflow("wfl_1", { until: (w) => w.state === "waiting" })).version, 5);
  assert.equal(asked.length, 3);
});

test("configs and builds are waited for", async (t) => {
  let asked = 0;
  const url = await service(t, (req, res) => {
    const done = ++asked % 2 === 0;
    if (req.url?.startsWith("/configs/")) return reply(res, 200, { state: done ? "released" : "building", version: done ? 2 : 1 });
    return reply(res, 200, { state: done ? "cancelled" : "queued", version: done ? 2 : 1 });
  });
  assert.equal((await client(url).awaitConfig("cfg_1")).state, "released");
  assert.equal((await client(url).awaitBuild("bld_1")).state, "cancelled");
});

test("an answer that is not held back is not asked for at once again", async (t) => {
  let asked = 0;
  const url = await service(t, (_, res) => {
    asked++;
    reply(res, 200, { state: "running", version: 3 });
  });
  await failure(client(url).awaitWorkflow("wfl_1", { signal: AbortSignal.timeout(1_500) }));
  assert.ok(asked <= 4, `${asked} questions in 1.5 s`);
});

test("the example of the README compiles", () => {
  const code = readFileSync("test/example.ts", "utf8");
  assert.ok(code && readFileSync("README.md", "utf8").includes("```ts\n" + code + "```"), "README.md and test/example.ts differ");
});

test("the package has what it needs and nothing else", () => {
  const [pack] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })) as [{ files: { path: string }[] }];
  const files = pack.files.map((f) => f.path);
  assert.ok(files.includes("dist/src/index.js") && files.includes("dist/src/index.d.ts") && files.includes("README.md"), String(files));
  assert.deepEqual(files.filter((f) => !/^(dist\/src\/[a-z.]+\.(js|d\.ts)|README\.md|LICENSE|package\.json)$/.test(f)), []);
});
