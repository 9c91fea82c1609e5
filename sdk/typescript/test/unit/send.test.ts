import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { Berth, fromEnvironment, NotBerth, ok, Problem, TooLarge, Unreachable } from "@berth/client";
import { client, failure, reply, service, token } from "./service.js";

test("a POST is repeated with its key and its body", async (t) => {
  const keys: unknown[] = [];
  const bodies: string[] = [];
  const url = await service(t, (req, res, body) => {
    keys.push(req.headers["idempotency-key"]);
    bodies.push(body);
    assert.equal(req.headers.authorization, `Bearer ${token}`);
    assert.equal(req.headers["berth-org"], "initech");
    switch (keys.length) {
      case 1:
        return reply(res, 503, { title: "Service Unavailable", status: 503, code: "unavailable" });
      case 2:
        return reply(res, 502);
      case 3:
        return reply(res, 429, "", { "Retry-After": "0" });
      case 4:
        return void req.socket.destroy();
      case 5: // breaks off in the middle of the answer
        res.writeHead(201, { "Content-Type": "application/json", "Content-Length": "100" });
        return void res.write('{"id":"app_1",', () => req.socket.destroy());
      default:
        return reply(res, 201, { id: "app_1", name: "hello" });
    }
  });
  const berth = client(url, { org: "initech" });
  const app = await ok(berth.POST("/apps", { body: { name: "hello" } }));
  assert.equal(app.id, "app_1");
  assert.equal(keys.length, 6);
  assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
  assert.deepEqual(new Set(keys).size, 1);
  assert.deepEqual(new Set(bodies), new Set(['{"name":"hello"}']));

  await berth.POST("/apps", { body: { name: "hello" } });
  await berth.POST("/apps", { body: { name: "hello" }, params: { header: { "Idempotency-Key": "mine" } } });
  assert.notEqual(keys[6], keys[0]);
  assert.equal(keys[7], "mine");
});

test("what is refused is not repeated", async (t) => {
  let asked = 0;
  const url = await service(t, (req, res) => {
    asked++;
    if (req.method === "PATCH") return reply(res, 502);
    if (req.url === "/me") return reply(res, 429, "", { "Retry-After": "3600" });
    return reply(res, 500, { title: "Internal Server Error", status: 500, code: "internal", request_id: "req_1" });
  });
  const berth = client(url);
  const refused = async (call: Promise<unknown>) => {
    asked = 0;
    const error = await failure(call);
    assert.ok(error instanceof Problem, inspect(error));
    assert.equal(asked, 1);
    return error;
  };
  assert.equal((await refused(berth.GET("/me"))).status, 429);
  assert.equal((await refused(berth.GET("/orgs"))).message, "internal server error (request req_1)");
  const conditional = berth.PATCH("/installs/{install}", { params: { path: { install: "acme" }, header: { "If-Match": '"1"' } }, body: {} });
  assert.equal((await refused(conditional)).message, "PATCH /installs/acme answered 502 Bad Gateway");
});

test("the caller ends a pause", async (t) => {
  const url = await service(t, (_, res) => reply(res, 503, "", { "Retry-After": "4" }));
  const enough = new Error("enough");
  const stop = new AbortController();
  setTimeout(() => stop.abort(enough), 50);
  const began = Date.now();
  assert.equal(await failure(client(url).GET("/me", { signal: stop.signal })), enough);
  assert.ok(Date.now() - began < 2_000);
});

test("a long wait is reported once, with its reason", async (t) => {
  const url = await service(t, (_, res) => reply(res, 503, { title: "Service Unavailable", status: 503, detail: "the database is not available" }));
  const told: string[] = [];
  await failure(client(url, { patienceMs: 4_000, onWaiting: (why) => told.push(why) }).GET("/me"));
  assert.deepEqual(told, ["the database is not available"]);
});

test("an answer that is waited for longer than the patience may break off", async (t) => {
  let asked = 0;
  const url = await service(t, (_, res) => {
    asked++;
    if (asked === 1) setTimeout(() => res.destroy(), 800);
    else reply(res, 200, {});
  });
  assert.equal((await client(url, { patienceMs: 500 }).GET("/me")).response.status, 200);
  assert.equal(asked, 2);
});

test("nobody there", async () => {
  const error = await failure(client("http://127.0.0.1:1/", { patienceMs: 300 }).GET("/me"));
  assert.ok(error instanceof Unreachable);
  assert.match(error.message, /^cannot reach Berth at http:\/\/127.0.0.1:1: .+/);
});

test("streams are not read ahead", async (t) => {
  const url = await service(t, (_, res) => {
    res.writeHead(200, { "Content-Type": "text/event-stream" });
    res.write("data: {}\n\n");
  });
  const stop = new AbortController();
  const { data } = await client(url).GET("/workflows/{workflow}/events", {
    params: { path: { workflow: "wfl_1" } },
    parseAs: "stream",
    signal: stop.signal,
  });
  const reader = (data as ReadableStream<Uint8Array>).getReader();
  const { value } = await reader.read();
  assert.equal(new TextDecoder().decode(value), "data: {}\n\n");
  stop.abort();
  await failure(reader.read());
});

test("others that answer", async (t) => {
  const url = await service(t, (req, res) => {
    if (req.url === "/me") return reply(res, 200, "<html>", { "Content-Type": "text/html; charset=utf-8" });
    return reply(res, 404, "404 page not found", { "Content-Type": "text/plain" });
  });
  for (const call of [client(url).GET("/me"), client(url).GET("/orgs")]) {
    const error = await failure(call);
    assert.ok(error instanceof NotBerth);
    assert.equal(error.message, `${url} answers, but it is not a Berth control plane`);
  }
});

test("attack: a redirect gets neither token nor body", async (t) => {
  let stolen = 0;
  const thief = await service(t, (_, res) => {
    stolen++;
    reply(res, 200, {});
  });
  for (const status of [301, 302, 303, 307, 308]) {
    const url = await service(t, (req, res) => reply(res, status, "", { Location: `${thief}/${req.headers.authorization}` }));
    const berth = client(url);
    for (const call of [berth.GET("/me"), berth.POST("/apps", { body: { name: "hello" } })]) {
      const error = await failure(call);
      assert.ok(error instanceof NotBerth, inspect(error));
      assert.equal(error.to, thief);
      assert.ok(!inspect(error).includes(token));
    }
  }
  assert.equal(stolen, 0);
});

test("attack: another address for one call", async (t) => {
  const thief = await service(t, () => assert.fail("the other host was asked"));
  const error = await failure(client("http://127.0.0.1:1").GET("/me", { baseUrl: thief }));
  assert.match(error.message, /sends nothing to/);
});

test("attack: no error and no printing shows the token", async (t) => {
  const url = await service(t, (req, res) => {
    const auth = req.headers.authorization ?? "";
    switch (req.url) {
      case "/me":
        return reply(res, 400, { title: auth, status: 400, code: auth, detail: auth, remedy: auth, request_id: auth, errors: [{ message: auth }] });
      case "/orgs":
        return reply(res, 502, auth);
      case "/keys":
        return reply(res, 200, auth);
      default:
        return reply(res, 302, "", { Location: `http://${auth.slice(7)}:x/` });
    }
  });
  const berth = client(url, { patienceMs: 0 });
  const errors = [
    await failure(berth.GET("/me")),
    await failure(berth.GET("/orgs")),
    await failure(berth.GET("/keys")),
    await failure(berth.GET("/tokens")),
    await failure(client("http://127.0.0.1:1", { patienceMs: 0 }).GET("/me")),
    await failure((async () => client(url, { token: `${token}\r\nX: y` }))()),
    await failure((async () => client(`http://me:${token}@127.0.0.1`))()),
    await failure((async () => client(`http://[${token}`))()),
  ];
  for (const printed of [...errors, berth]) {
    const text = inspect(printed, { depth: 9, showHidden: true }) + JSON.stringify(printed) + String(printed) + ((printed as Error).stack ?? "");
    assert.ok(!text.includes(token), text);
  }
});

test("attack: answers without an end", async (t) => {
  const block = Buffer.alloc(1 << 20, " ");
  const packed = gzipSync(Buffer.alloc(64 << 20, " "));
  const url = await service(t, (req, res) => {
    if (req.url === "/me") {
      res.writeHead(200, { "Content-Type": "application/json", "Content-Encoding": "gzip" });
      return void res.end(packed);
    }
    res.writeHead(req.url === "/orgs" ? 200 : 409, { "Content-Type": "application/json" });
    const more = () => {
      while (!res.destroyed && res.write(block));
    };
    res.on("drain", more);
    more();
  });
  const berth = client(url, { maxAnswerBytes: 4 << 20 });
  const before = process.memoryUsage().rss;
  for (const call of [() => berth.GET("/me"), () => berth.GET("/orgs"), () => berth.GET("/keys")]) {
    assert.ok((await failure(call())) instanceof TooLarge);
  }
  const took = (process.memoryUsage().rss - before) >> 20;
  assert.ok(took < 200, `it took ${took} MiB`);
});

test("options that cannot be right", () => {
  for (const options of [
    { url: "", token },
    { url: "http://127.0.0.1", token: "" },
    { url: "berth.example.com", token },
    { url: "file:///etc/passwd", token },
    { url: "https://berth.example.com/?x", token },
  ]) {
    assert.throws(() => new Berth(options), inspect(options));
  }
  const options = fromEnvironment({ BERTH_URL: "https://berth.example.com", BERTH_TOKEN: token, BERTH_ORG: "initech" });
  assert.deepEqual(options, { url: "https://berth.example.com", token, org: "initech" });
  assert.ok(new Berth(options));
});
