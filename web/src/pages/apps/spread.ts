// Counts on which releases the installs of apps are. Pure.
import type { Answer } from "~/api/client";

type InstallStatus = Pick<Answer<"/status">["items"][number], "install" | "newest_release">;

export interface Spread {
  all: number;
  /** On the newest release. */
  newest: number;
  unhealthy: number;
  /** The newest first; those without a release come last, with number 0. */
  releases: { number: number; installs: string[] }[];
}

/** By the names of apps. */
export function spread(statuses: readonly InstallStatus[]): Map<string, Spread> {
  const found = new Map<string, Spread>();
  for (const { install, newest_release: newest } of statuses) {
    let of = found.get(install.app.name);
    if (!of) found.set(install.app.name, (of = { all: 0, newest: 0, unhealthy: 0, releases: [] }));
    const number = install.release?.number ?? 0;
    of.all++;
    if (newest && number === newest.number) of.newest++;
    if (install.health === "unhealthy") of.unhealthy++;
    const release = of.releases.find((r) => r.number === number);
    if (release) release.installs.push(install.name);
    else of.releases.push({ number, installs: [install.name] });
  }
  for (const of of found.values()) of.releases.sort((a, b) => b.number - a.number);
  return found;
}
