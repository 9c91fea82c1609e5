// Code that is loaded when it is first needed. While the control plane is away, it is asked
// for until it comes: what is on the screen stays there.
import { type ComponentType, lazy } from "react";

/** Code that will not come, unless the page is loaded again. */
export class NotLoaded extends Error {}

/** What the control plane says of its pages: nothing, that they are those of this release, or of another one. */
export type Pages = "silent" | "same" | "other";

const firstPause = 250;
const maxPause = 10_000;
/** How often a file may fail to come from a control plane that has it: its code throws, or something in between takes it. */
const most = 4;

/** What to do after a file did not come, which happened so often while the control plane did answer. */
export function after(pages: Pages, failures: number): "ask again" | "outdated" | "give up" {
  if (pages === "silent") return "ask again";
  if (pages === "other") return "outdated";
  return failures < most ? "ask again" : "give up";
}

/** Loads code, for as long as it takes. Errors: NotLoaded. */
export function patient<T>(load: () => Promise<T>, pages: () => Promise<Pages> = whichPages): () => Promise<T> {
  return async () => {
    let failures = 0;
    for (let pause = firstPause; ; pause = Math.min(2 * pause, maxPause)) {
      try {
        return await load();
      } catch (error) {
        const found = await pages();
        if (found !== "silent") failures++;
        const next = after(found, failures);
        if (next === "outdated")
          throw new NotLoaded("Berth was upgraded since this page was opened. Load it again to go on.", { cause: error });
        if (next === "give up") throw new NotLoaded("A part of this page could not be loaded.", { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  };
}

/** A component whose code is loaded when it is first shown. */
export const late = <Props>(load: () => Promise<{ default: ComponentType<Props> }>) => lazy(patient(load));

/** Compares the code that the control plane's pages begin with to that of this page. */
async function whichPages(): Promise<Pages> {
  const begins = document.querySelector('script[type="module"][src]')?.getAttribute("src");
  try {
    const answer = await fetch(import.meta.env.BASE_URL, { cache: "no-store", signal: AbortSignal.timeout(maxPause) });
    if (!answer.ok) return "silent"; // somebody in between answers for it
    return begins && (await answer.text()).includes(`"${begins}"`) ? "same" : "other";
  } catch {
    return "silent";
  }
}
