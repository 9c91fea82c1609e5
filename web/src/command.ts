// The commands that buttons of these pages stand for. Pure.

/** What can be done with many installs. */
export type Operation = "deploy" | "pause" | "resume";

/** A word of a command line as a shell takes it. */
export const word = (text: string): string => (/^[A-Za-z0-9_./:=@,%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

const line = (...words: (string | false | undefined)[]): string =>
  words.filter((w) => w !== false && w !== undefined && w !== "").join(" ");

export const bulkCommand = (operation: Operation, installs: readonly string[], reason?: string): string =>
  line("berth bulk", operation, `--install ${installs.map(word).join(",")}`, operation === "pause" && `--reason ${word(reason || "TEXT")}`);

interface DeployWords {
  install: string;
  components?: readonly string[];
  release?: string | undefined;
  planOnly?: boolean;
}

export const deployCommand = ({ install, components = [], release, planOnly }: DeployWords): string =>
  line(
    "berth deploy",
    word(install),
    ...components.filter((c) => c !== "sandbox").map(word),
    components.includes("sandbox") && "--sandbox",
    release && `--to ${word(release)}`,
    planOnly && "--plan",
  );

export const rollbackCommand = ({ install, components = [], release, planOnly }: DeployWords): string =>
  line(
    "berth rollback",
    word(install),
    ...components.map((c) => `--component ${word(c)}`),
    release && `--to ${word(release)}`,
    planOnly && "--plan",
  );

export const runCommand = (install: string, action: string, inputs: Readonly<Record<string, string>>): string =>
  line("berth actions run", word(install), word(action), ...Object.entries(inputs).map(([k, v]) => `--input ${word(`${k}=${v}`)}`));

interface CreateWords {
  name: string;
  app: string;
  customer: string;
  stack: string;
  inputs: Readonly<Record<string, string>>;
  provision: boolean;
}

export const createCommand = ({ name, app, customer, stack, inputs, provision }: CreateWords): string =>
  line(
    "berth installs create",
    name ? word(name) : "NAME",
    `--app ${app ? word(app) : "APP"}`,
    customer !== "" && customer !== name && `--customer ${word(customer)}`,
    stack !== "local" && `--stack ${word(stack)}`,
    ...Object.entries(inputs).map(([k, v]) => `--input ${word(`${k}=${v}`)}`),
    !provision && "--no-provision",
  );

/** Signs what the page shows and nothing else: the digest of its manifest is part of the command. */
export const signCommand = (release: string, manifest?: string): string =>
  line("berth releases sign", word(release), "--key FILE", manifest && `--expect ${word(manifest)}`);

export const revokeCommand = (release: string, id: string): string =>
  line("berth releases revoke", word(release), "--key FILE", "--reason TEXT", `--expect ${word(id)}`);

export interface MemberWords {
  name: string;
  kind: string;
  email: string;
  role: string;
  /** The grant counts only there. */
  within?: { kind: "customer" | "app" | "install"; name: string };
}

export const memberCommand = ({ name, kind, email, role, within }: MemberWords): string =>
  line(
    "berth members create",
    name ? word(name) : "NAME",
    `--role ${word(role)}`,
    kind !== "user" && `--kind ${word(kind)}`,
    kind === "user" && email !== "" && `--email ${word(email)}`,
    within && `--${within.kind} ${within.name ? word(within.name) : within.kind.toUpperCase()}`,
  );

const pairs = (labels: string): string[] => labels.split(/[\s,]+/).filter((pair) => pair !== "");

/** Labels as people type them, key=value with spaces between. Throws where one is none. */
export function labelsOf(labels: string): Record<string, string> {
  return Object.fromEntries(
    pairs(labels).map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new Error(`${pair} is no label: write key=value`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

export const customerCommand = (name: string, labels: string): string =>
  line("berth customers create", name ? word(name) : "NAME", ...pairs(labels).map((pair) => `--label ${word(pair)}`));
