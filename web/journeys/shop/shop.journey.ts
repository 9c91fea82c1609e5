// The life of examples/shop on a real cluster, which KUBECONFIG names to kubectl.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { berth, close, settled, visit } from "../browser";
import { app, approveEach, deploy, head, watch, well } from "../full/life";

afterAll(close);

const name = process.env["BERTH_INSTALL"] ?? "";

async function kubectl(...args: string[]): Promise<string> {
  const program = process.env["KUBECTL"] || "kubectl"; // empty when it is only on the path
  const { stdout } = await promisify(execFile)(program, ["--namespace", `shop-${name}`, ...args]);
  return stdout;
}

const limit = async () =>
  kubectl("get", "deployment/web", "--output", "jsonpath={.spec.template.spec.containers[0].resources.limits.memory}");

test("a shop is made on the page, provisioned by approving each change, and becomes healthy while one looks", async () => {
  await berth("sync", app, "--app", "shop", "--wait", "--timeout", "4m", "-m", "Open");
  const seen = await watch("/installs");
  const { page } = seen;
  await page.getByRole("button", { name: "New install…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill(name);
  await dialog.getByLabel("Title").fill("Harbour & Sons");
  await dialog.getByText(/admin_token: sensitive/).waitFor();
  await dialog.getByRole("button", { name: "Create install" }).click();
  await page.waitForURL("**/workflows/*");
  expect(await approveEach(page)).toBeGreaterThanOrEqual(6); // scripts, image, catalogue, notices, web, extras
  await head(page).getByRole("link", { name }).click();
  await head(page).getByText("healthy", { exact: true }).waitFor({ timeout: 200_000 });
  await page.getByText("5 of 5 components on r1").waitFor();
  await well(seen);
}, 600_000);

test("a release with one field more is reviewed, approved, and in the cluster", async () => {
  const file = join(app, "components", "web.toml");
  await writeFile(file, (await readFile(file, "utf8")).replace('"64Mi"', '"96Mi"'));
  const seen = await watch(`/installs/${name}`);
  const { page } = seen;
  await berth("sync", app, "--app", "shop", "--wait", "--timeout", "4m", "-m", "More memory");
  await head(page).getByText("↑1 behind r2").waitFor();
  await deploy(page, "web");
  await page.getByRole("link", { name: "Review", exact: true }).first().click();
  await page.getByText("96Mi").first().waitFor();
  await page.goBack();
  await approveEach(page);
  expect(await limit()).toBe("96Mi");
  await well(seen);
}, 400_000);

test("a Deployment that a person patched is shown with the field and who did it, and taken back by an approved change", async () => {
  const patch = [{ op: "replace", path: "/spec/template/spec/containers/0/resources/limits/memory", value: "80Mi" }];
  await kubectl("patch", "deployment/web", "--type=json", "--patch", JSON.stringify(patch));
  const seen = await watch(`/installs/${name}?tab=drift`);
  const { page } = seen;
  await page.getByRole("button", { name: "Look now" }).click();
  const found = page.getByRole("article").filter({ hasText: "web" }).filter({ hasText: "a person made it" });
  await found.getByText("drifted", { exact: true }).waitFor({ timeout: 120_000 });
  const row = found.getByRole("row", { name: /memory/ });
  expect(await row.textContent()).toMatch(/96Mi.*80Mi.*kubectl-patch/);
  await found.getByRole("button", { name: "Plan to take it back" }).click();
  await page.waitForURL("**/workflows/*");
  await approveEach(page);
  expect(await limit()).toBe("96Mi");
  await head(page).getByRole("link", { name }).click();
  await head(page).getByText("1 drifted").waitFor({ state: "detached", timeout: 60_000 });
  await well(seen);
}, 400_000);

test("a shop without pods becomes unhealthy while one looks, and healthy once they are back", async () => {
  const seen = await watch(`/installs/${name}`);
  const { page } = seen;
  await head(page).getByText("healthy", { exact: true }).waitFor({ timeout: 200_000 });
  await kubectl("scale", "deployment/web", "--replicas", "0");
  await head(page).getByText("unhealthy", { exact: true }).waitFor({ timeout: 300_000 });
  await page.getByRole("link", { name: "Checks", exact: true }).click();
  await page.getByRole("listitem").filter({ hasText: "unhealthy" }).first().waitFor();
  await kubectl("scale", "deployment/web", "--replicas", "2");
  await head(page).getByText("healthy", { exact: true }).waitFor({ timeout: 300_000 });
  await well(seen);
}, 900_000);

test("its README and its secrets are shown, and no secret's value", async () => {
  const { page, wrong, context } = await visit(`/installs/${name}?tab=readme`);
  await settled(page);
  await page.getByText("Harbour & Sons").first().waitFor();
  await page.getByRole("link", { name: "Secrets", exact: true }).click();
  await page
    .getByRole("row", { name: /report_key/ })
    .getByText("made by the runner")
    .waitFor();
  expect(wrong).toEqual([]);
  await context.close();
});
