// Alerts that come late: the end of what 02-silence began, and drift, of which nobody is told
// within ten minutes of a change.
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, test } from "vitest";
import { close, stage } from "../browser";
import { head, ofInstall, ready, watch, well } from "./life";

afterAll(close);

test(
  "after ten minutes of silence the inbox says so, with the time; the runner comes back while one looks",
  async () => {
    const inbox = await watch("/");
    const silent = inbox.page.getByRole("region", { name: "Silent runners" });
    await silent.getByRole("link", { name: /initech/ }).waitFor({ timeout: 13 * 60_000 });
    await silent
      .getByText(/min ago/)
      .first()
      .waitFor();
    const install = await watch("/installs/initech");
    await head(install.page).getByText("offline", { exact: true }).waitFor();
    await stage("start/" + encodeURIComponent("runner initech"));
    await head(install.page).getByText("online", { exact: true }).waitFor({ timeout: 120_000 });
    await well(install);
    await well(inbox);
  },
  16 * 60_000,
);

test(
  "drift comes into the inbox, and leads to what happened to the install",
  async () => {
    await ready("umbrella");
    const inbox = await watch("/");
    const seen = await watch("/installs/umbrella?tab=drift");
    const { page } = seen;
    const flags = await ofInstall("umbrella", "flags");
    const deployed = await readFile(flags, "utf8");
    await writeFile(flags, JSON.stringify({ text: "by hand" }));
    await page.getByRole("button", { name: "Look now" }).click();
    const line = inbox.page.getByRole("region", { name: "Drifted" }).getByRole("link", { name: /umbrella/ });
    await line.waitFor({ timeout: 15 * 60_000 });
    await line.getByText("component/flags drifted from what was deployed").waitFor();
    await line.click();
    await inbox.page.getByRole("link", { name: "Timeline", exact: true }).click();
    await inbox.page.getByRole("combobox", { name: "Only this kind" }).selectOption("drift");
    await inbox.page.getByRole("listitem").filter({ hasText: /flags/ }).first().waitFor();
    await writeFile(flags, deployed);
    await page.getByRole("button", { name: "Look now" }).click();
    await page.getByRole("article").filter({ hasText: "flags" }).getByText("as deployed", { exact: true }).waitFor({ timeout: 90_000 });
    await well(seen);
    await well(inbox);
  },
  18 * 60_000,
);
