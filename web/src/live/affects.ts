// Says what an event makes old. Pure.
import type { Key } from "~/api/client";

/** An event of the org's stream, as far as pages look at it. */
export interface OrgEvent {
  seq: number;
  kind: string;
  install_id?: string;
  app_id?: string;
  body: Record<string, unknown>;
}

// What changes with a noun: the beginnings of paths. A path with {install} is old only
// for the install of the event, one with {workflow} only for its workflow, and so on.
const ofInstall = [
  "/installs",
  "/installs/{install}",
  "/installs/{install}/status",
  "/installs/{install}/resources",
  "/installs/{install}/resources/{resource}",
  "/installs/{install}/graph",
  "/installs/{install}/timeline",
  "/installs/{install}/why",
  "/installs/{install}/readme",
  "/installs/{install}/snapshot/diff",
  "/installs/{install}/secrets",
  "/resources",
  "/status",
];
const ofFlow = [
  ...ofInstall,
  "/workflows",
  "/installs/{install}/workflows",
  "/workflows/{workflow}",
  "/workflows/{workflow}/why",
  "/steps/{step}",
];
const ofHealth = [
  ...ofInstall,
  "/installs/{install}/health",
  "/installs/{install}/health/history",
  "/health/history",
  "/installs/{install}/remediations",
  "/installs/{install}/drift",
];

const makesOld: Record<string, readonly string[]> = {
  action_run: [
    "/action-runs",
    "/action-runs/{run}",
    "/installs/{install}/timeline",
    "/installs/{install}/actions",
    "/workflows/{workflow}",
  ],
  alarm: ["/alarms", "/runners", "/runners/{runner}", "/installs", "/installs/{install}"],
  alert: ["/alerts", "/alerts/{alert}", "/installs", "/installs/{install}", "/incidents", "/incidents/{incident}"],
  approval_policy: ["/apps/{app}/approval-policy", "/installs/{install}/approval-policy", "/changes/{change}", "/installs/{install}/why"],
  build: ["/builds", "/builds/{build}", "/apps/{app}/configs", "/configs/{config}"],
  change: [
    ...ofFlow,
    "/installs/{install}/actions",
    "/changes",
    "/changes/{change}",
    "/changes/{change}/plan",
    "/changes/{change}/plan/tree",
    "/policy-reports",
  ],
  check: ofHealth,
  config: ["/apps", "/apps/{app}", "/apps/{app}/configs", "/apps/{app}/policies", "/apps/{app}/variables"],
  consent: ["/changes", "/changes/{change}", "/workflows/{workflow}", "/workflows/{workflow}/why", "/installs/{install}/timeline"],
  decision: ["/changes", "/changes/{change}", "/workflows/{workflow}", "/workflows/{workflow}/why", "/installs/{install}/timeline"],
  drift: [...ofHealth, "/drift"],
  freeze: ["/installs/{install}/freezes", "/apps/{app}/freezes", ...ofInstall],
  health: ofHealth,
  incident: ["/incidents", "/incidents/{incident}", "/alerts"],
  inputs: ["/installs/{install}/inputs", ...ofInstall],
  install: [...ofInstall, "/installs/{install}/state", "/bulk", "/bulk/{bulk}"],
  policy: ["/changes/{change}", "/policy-reports"],
  release: [
    "/apps",
    "/apps/{app}",
    "/apps/{app}/releases",
    "/releases/{release}",
    "/status",
    "/installs/{install}/status",
    "/installs/{install}/timeline",
  ],
  remediation: ofHealth,
  resource: [...ofHealth, "/installs/{install}/state"],
  role: ["/installs/{install}/roles", "/installs/{install}"],
  runner: ["/runners", "/runners/{runner}", "/installs/{install}/status", "/status", "/installs/{install}/timeline"],
  secret: ["/installs/{install}/secrets"],
  step: [...ofFlow],
  variables: ["/apps/{app}/variables"],
  webhook_delivery: ["/webhooks", "/webhooks/{webhook}/deliveries"],
  workflow: [...ofFlow, "/changes", "/bulk", "/bulk/{bulk}"],
};

// A parameter of a path, and what of an event has to fit it: an id, or a name that people use.
const fits: Record<string, (e: OrgEvent) => unknown[]> = {
  install: (e) => [e.install_id, e.body["install"]],
  app: (e) => [e.app_id, e.body["app"]],
  workflow: (e) => [e.body["workflow_id"]],
  change: (e) => [e.body["change_id"]],
  step: (e) => [e.body["step_id"]],
  run: (e) => [e.body["run_id"]],
  build: (e) => [e.body["build_id"]],
  config: (e) => [e.body["config_id"]],
  runner: (e) => [e.body["runner_id"]],
  alert: (e) => [e.body["alert_id"]],
  incident: (e) => [e.body["incident_id"]],
  resource: (e) => [e.body["resource_id"], e.body["resource"]],
};

/** Tells whether what was read under a key may be another now. */
export function affects(event: OrgEvent, [path, ask]: Key): boolean {
  const noun = event.kind.slice(0, event.kind.indexOf("."));
  if (!makesOld[noun]?.includes(path)) return false;
  const given = ask.path ?? {};
  return Object.entries(given).every(([name, value]) => {
    const known = (fits[name]?.(event) ?? []).filter((v) => v !== undefined);
    return known.length === 0 || known.some((v) => v === value);
  });
}
