// The end of what 02-silence began.
import { afterAll, test } from "vitest";
import { close, stage } from "../browser";
import { head, watch, well } from "./life";

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
