// A runner whose process is frozen. What people are told at once and after minutes; the end of
// it is in 10-late, so that nothing waits for it.
import { afterAll, expect, test } from "vitest";
import { close, stage } from "../browser";
import { head, ready, watch, well } from "./life";

afterAll(close);

test("a runner that falls silent is seen on the page of its install and of runners, with the time", async () => {
  await ready("umbrella"); // for 10-late, long after its last change
  await ready("initech");
  const seen = await watch("/installs/initech");
  const runners = await watch("/runners");
  await head(seen.page).getByText("online", { exact: true }).waitFor();
  await stage("stop/" + encodeURIComponent("runner initech"));
  await head(seen.page).getByText("offline", { exact: true }).waitFor({ timeout: 180_000 });
  await head(seen.page).getByText(/^seen/).getByText("min ago").waitFor();
  const row = runners.page.getByRole("region", { name: "Need a look" }).getByRole("row", { name: /initech/ });
  await row.getByText("silent", { exact: true }).waitFor();
  expect(await row.textContent()).toMatch(/min ago/);
  await well(seen);
  await well(runners);
});
