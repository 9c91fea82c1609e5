// Large answers of the API, made here: what stands in for a fleet, a log, a plan and a graph
// that nobody has at hand. The pages and the browser that they are given to are real.
import type { Page, Route } from "playwright-core";

/** Numbers that look random and are the same each time. */
export function numbers(seed: number): () => number {
  return () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
}

const components = Array.from({ length: 30 }, (_, i) => `component-${i}`);

/** Installs with 30 components each, as the API answers them. */
export function fleet(count: number) {
  const next = numbers(7);
  const installs = Array.from({ length: count }, (_, i) => {
    const release = next() < 0.7 ? 14 : 13;
    const name = `install-${String(i).padStart(4, "0")}`;
    return {
      install: {
        id: `ins_${i}`,
        name,
        app: { id: "app_1", name: "shop" },
        customer: { id: `cus_${i % 50}`, name: `Customer ${i % 50}` },
        stack: "kubernetes",
        approval_option: "prompt",
        labels: { tier: i % 3 ? "gold" : "silver" },
        component_toggles: {},
        state: "live",
        health: next() < 0.04 ? "unhealthy" : "healthy",
        open_alarms: 0,
        open_alerts: 0,
        drifted: next() < 0.05 ? 2 : 0,
        inputs_version: 1,
        state_version: 3,
        created_by: "ada",
        created_at: "2026-11-01T00:00:00Z",
        release: { id: `rel_${release}`, number: release },
      },
      standing: "live",
      newest_release: { id: "rel_14", number: 14 },
      pending: release < 14 ? ["release"] : [],
      runner: { id: `rnr_${i}`, online: true, switch: "run", last_seen_at: "2026-11-28T00:00:00Z" },
    };
  });
  const resources = installs.flatMap(({ install }) =>
    components.map((name, j) => ({
      id: `res_${install.id}_${j}`,
      install: { id: install.id, name: install.name },
      app: install.app,
      customer: install.customer,
      kind: "component",
      name,
      type: "helm_chart",
      state: "live",
      health: install.health === "unhealthy" && j === 3 ? "unhealthy" : "healthy",
      drift: "none",
      live_release: install.release,
      updated_at: install.created_at,
    })),
  );
  return { installs, resources };
}

/** Answers how the installs that are asked for were over seven days. */
export function weeks(route: Route) {
  const asked = new URL(route.request().url()).searchParams.getAll("install");
  const items = asked.map((id) => {
    const bad = Number(id.slice("ins_".length)) % 7;
    return {
      install: { id, name: id },
      healthy_seconds: 518_400,
      unhealthy_seconds: 86_400,
      unknown_seconds: 0,
      availability: 0.8571,
      strip: Array.from({ length: 7 }, (_, day) => (day === bad ? "unhealthy" : "healthy")),
    };
  });
  return route.fulfill({ json: { since: "2026-11-21T00:00:00Z", until: "2026-11-28T00:00:00Z", items } });
}

/** Answers a list page by page, as the API does. */
export function pages(items: unknown[]) {
  return (route: Route) => {
    const asked = new URL(route.request().url()).searchParams;
    const limit = Number(asked.get("limit") ?? 50);
    const at = Number(asked.get("after") ?? 0);
    return route.fulfill({
      json: { items: items.slice(at, at + limit), ...(at + limit < items.length ? { next: String(at + limit) } : {}) },
    });
  };
}

/** Answers a log of so many lines, whose stream has ended. */
export async function serveLog(page: Page, stream: string, lines: number, text: (seq: number) => string): Promise<void> {
  await page.route(new RegExp(`/logs/streams/${stream}(\\?|$)`), (route) =>
    route.fulfill({
      json: {
        id: stream,
        attempt: 1,
        state: "finished",
        lines,
        bytes: lines * 60,
        sha256: "0".repeat(64),
        complete: true,
        gaps: [],
        late_redaction: false,
        created_at: "2026-11-28T00:00:00Z",
        finished_at: "2026-11-28T01:00:00Z",
      },
    }),
  );
  await page.route(new RegExp(`/logs/streams/${stream}/records`), (route) => {
    const asked = new URL(route.request().url()).searchParams;
    const after = Number(asked.get("after") ?? 0);
    const limit = Number(asked.get("limit") ?? 1000);
    if (asked.has("contains") || asked.has("level")) return route.fulfill({ json: { items: [] } });
    const items = Array.from({ length: Math.max(0, Math.min(limit, lines - after)) }, (_, i) => ({
      seq: after + i + 1,
      time: "2026-11-28T00:00:01Z",
      source: "stdout",
      text: text(after + i + 1),
    }));
    return route.fulfill({ json: { items, ...(after + limit < lines ? { next: after + limit } : {}) } });
  });
}

/** The tree of a plan with so many objects. */
export function planOf(change: string, objects: number) {
  const types = ["aws_iam_role", "aws_db_instance", "Deployment.apps", "terraform_data", "ConfigMap"];
  const roots = Array.from({ length: objects }, (_, i) => ({
    kind: "resource",
    type: types[i % 5],
    name: `thing_${i}`,
    address: `${types[i % 5]}.thing_${i}`,
    action: i % 50 === 0 ? "delete" : i % 33 === 0 ? "replace" : i % 3 ? "update" : "create",
    children: [
      { kind: "attribute", name: "spec.replicas", before: "1", after: "2" },
      {
        kind: "attribute",
        name: "password",
        hidden: true,
        before: "(sensitive, digest 0123456789ab)",
        after: "(sensitive, digest 00112233aabb)",
      },
    ],
  }));
  const counts = { no_change: false, create: 1, update: 1, replace: 1, delete: 1, run: 0, outputs: 0 };
  return { change_id: change, no_change: false, counts, roots };
}

/** A graph of an install in layers of ten, where the API would place its nodes. */
export function graphOf(nodes: number) {
  const [width, height, between] = [160, 44, 24];
  const layers = Math.ceil(nodes / 10);
  const boxes = Array.from({ length: nodes }, (_, i) => ({
    x: Math.floor(i / 10) * (width + 60),
    y: (i % 10) * (height + between),
    width,
    height,
  }));
  const edges = Array.from({ length: nodes - 10 }, (_, i) => ({
    from: `part-${i + 10}`,
    to: `part-${i}`,
    reasons: [{ kind: "reference", reference: `{{ .components.part-${i}.outputs.url }}`, file: "app.toml", line: i + 1 }],
  }));
  const lines = edges.map((_, i) => {
    const [to, from] = [boxes[i]!, boxes[i + 10]!];
    return [
      { x: to.x + width, y: to.y + height / 2 },
      { x: from.x, y: from.y + height / 2 },
    ];
  });
  return {
    nodes: boxes.map((_, i) => ({
      name: `part-${i}`,
      kind: "component",
      type: "helm_chart",
      state: "live",
      health: i % 40 ? "healthy" : "unhealthy",
      drift: "none",
    })),
    edges,
    layout: { width: layers * (width + 60), height: 10 * (height + between), boxes, lines },
  };
}
