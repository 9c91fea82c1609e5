import { Berth, fromEnvironment, ok, Problem } from "@berth/client";

const berth = new Berth(fromEnvironment(process.env)); // BERTH_URL, BERTH_TOKEN, BERTH_ORG

// Lists read further pages while you go through them.
for await (const install of berth.list("/installs", { query: { app: "hello" } })) {
  console.log(install.name, install.state);
}

// Every operation, by its method and path; ok() takes the body out of the answer.
const started = await ok(
  berth.POST("/installs/{install}/workflows", {
    params: { path: { install: "acme" } },
    body: { kind: "deploy" },
  }),
);

// Waits for the end, or for a decision.
const workflow = await berth.awaitWorkflow(started.id, { until: (w) => w.state === "waiting" });
console.log(workflow.state);

// What the control plane refuses is thrown, with a code to branch on.
try {
  await berth.POST("/apps", { body: { name: "hello" } });
} catch (error) {
  if (!(error instanceof Problem && error.code === "already_exists")) throw error;
}
