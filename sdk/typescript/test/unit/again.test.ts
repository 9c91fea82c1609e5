import assert from "node:assert/strict";
import { test } from "node:test";
import { again, askedFor, type Attempt } from "../../src/again.js";

test("again decides as the Go client does", () => {
  const cases: [string, Partial<Attempt>, number | undefined][] = [
    ["the service restarts", { status: 503 }, 100],
    ["a proxy has nobody behind it", { status: 502 }, 100],
    ["a proxy waited too long", { status: 504 }, 100],
    ["the service says when", { status: 503, asked: 1000 }, 1000],
    ["the service asks for less than the pause", { status: 503, asked: 0 }, 100],
    ["too many requests", { status: 429, asked: 1000 }, 1000],
    ["too many requests, who knows until when", { status: 429 }, undefined],
    ["it asks for more than the patience", { status: 429, asked: 3_600_000 }, undefined],
    ["the patience is over", { status: 503, left: 50 }, undefined],
    ["never repeated", { status: 503, left: 0 }, undefined],
    ["done", { status: 200 }, undefined],
    ["a fault of the service", { status: 500 }, undefined],
    ["refused", { status: 409 }, undefined],
    ["refused, with a time", { status: 403, asked: 1000 }, undefined],
    ["the connection broke", { status: 0 }, 100],
    ["not who it should be", { status: 0, passes: false }, undefined],
    ["conditional, perhaps done", { status: 503, conditional: true }, undefined],
    ["conditional, perhaps done before the connection broke", { status: 0, conditional: true }, undefined],
    ["conditional, certainly not done", { status: 429, asked: 1000, conditional: true }, 1000],
  ];
  for (const [name, attempt, want] of cases) {
    assert.equal(again({ conditional: false, status: 0, passes: true, asked: undefined, pause: 100, left: 60_000, ...attempt }), want, name);
  }
});

test("Retry-After is seconds or a time", () => {
  const now = Date.parse("2026-11-20T10:00:00Z");
  for (const [header, want] of [
    ["2", 2000],
    [" 0 ", 0],
    ["Fri, 20 Nov 2026 10:00:07 GMT", 7000],
    ["Fri, 20 Nov 2026 09:00:00 GMT", 0],
    ["-1", undefined],
    ["soon", undefined],
    ["1.5", undefined],
    ["", undefined],
    [null, undefined],
  ] as const) {
    assert.equal(askedFor(header, now), want, String(header));
  }
});
