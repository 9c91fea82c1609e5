// What somebody can do, for the search: each with the command that it stands for. Pure.
import { type Grant, type Place, type Right, whyNot } from "~/api/may";
import { word } from "~/command";

export interface Deed {
  name: string;
  command: string;
  /** Where it is done, below /ui. */
  href: string;
}

interface OfInstall extends Place {
  name: string;
  paused: boolean;
}

/** What can be done with an install, by who has these grants. */
export function deedsOfInstall({ name, paused, ...at }: OfInstall, grants: readonly Grant[]): Deed[] {
  const page = `/installs/${encodeURIComponent(name)}`;
  const w = word(name);
  const all: [Right, string, string, string][] = [
    ["workflows:write", `Deploy to ${name}`, `berth deploy ${w}`, "?do=deploy"],
    ["workflows:write", `Run an action in ${name}`, `berth actions run ${w} ACTION`, "?tab=actions"],
    ["workflows:write", `Roll back ${name}`, `berth rollback ${w}`, "?do=rollback"],
    paused
      ? ["installs:write", `Resume ${name}`, `berth installs resume ${w}`, ""]
      : ["installs:write", `Pause ${name}`, `berth installs pause ${w} --reason TEXT`, "?do=pause"],
    ["installs:write", `Look for drift in ${name}`, `berth installs drift ${w} --now`, "?tab=drift"],
    ["apps:read", `Show the inputs of ${name}`, `berth installs inputs ${w}`, "?tab=inputs"],
    ["apps:read", `Show what happened to ${name}`, `berth history ${w}`, "?tab=timeline"],
  ];
  return all
    .filter(([right]) => !whyNot(grants, right, at))
    .map(([, says, command, search]) => ({ name: says, command, href: page + search }));
}

/** What can be done with the org. */
export function deedsOfOrg(grants: readonly Grant[]): Deed[] {
  const all: [Right, string, string, string][] = [
    ["members:write", "Add a member", "berth members create NAME --role ROLE", "/settings/members"],
    ["tokens:write", "Create a token", "berth tokens create NAME", "/settings/tokens"],
    ["webhooks:write", "Add a webhook", "berth webhooks create NAME --url URL", "/settings/webhooks"],
    ["installs:write", "Mute alerts", "berth alerts mute --reason TEXT", "/settings/mutes"],
    ["org:read", "Verify the org’s chain", "berth orgs chain vendor.jsonl", "/settings/chain"],
    ["org:read", "End a browser’s session", "berth sessions", "/settings/sessions"],
  ];
  return all.filter(([right]) => !whyNot(grants, right)).map(([, name, command, href]) => ({ name, command, href }));
}

const most = 12;

/** Those whose name or command has each word that was typed, as their beginnings. */
export function matching(deeds: readonly Deed[], typed: string): Deed[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.join("").length < 2) return [];
  const has = ({ name, command }: Deed) => {
    const parts = `${name} ${command}`.toLowerCase().split(/[\s-]+/);
    return words.every((w) => parts.some((part) => part.startsWith(w)));
  };
  return deeds.filter(has).slice(0, most);
}
