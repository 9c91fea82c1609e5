// The language of the filter bar: `state:unhealthy label:tier=gold release:<14 -app:shop text`.
// What is said must all hold; a minus turns a term around. Pure.

/** What a filter looks at of an install. */
export interface Filtered {
  name: string;
  app: string;
  customer: string;
  labels: Readonly<Record<string, string>>;
  release?: number | undefined;
  health: string;
  /** Every word that says how it stands: live, waiting, drifted, behind, paused… */
  words: readonly string[];
}

export interface Term {
  not: boolean;
  /** Absent for free text. */
  key?: Key;
  value: string;
}

const keys = ["state", "health", "label", "app", "customer", "release"] as const;
type Key = (typeof keys)[number];

const token = /(-?)(?:([a-z]+):)?("[^"]*"?|\S+)/gy;

/** Reads what was typed. A key that is unknown is text like any other. */
export function parse(text: string): Term[] {
  const terms: Term[] = [];
  for (let at = 0; at < text.length;) {
    if (/\s/.test(text[at]!)) {
      at++;
      continue;
    }
    token.lastIndex = at;
    const found = token.exec(text);
    if (!found) {
      // A key whose value is not typed yet.
      at = next(text, at);
      continue;
    }
    const [all, minus = "", key, quoted = ""] = found;
    at += all.length;
    const value = unquote(quoted);
    if (isKey(key)) terms.push({ not: minus === "-", key, value });
    else terms.push({ not: minus === "-", value: key === undefined ? value : `${key}:${value}` });
  }
  return terms.filter((t) => t.value !== "" && !(t.key === undefined && keys.some((k) => t.value === `${k}:`)));
}

const next = (text: string, at: number) => {
  const space = text.slice(at).search(/\s/);
  return space < 0 ? text.length : at + space;
};
const unquote = (value: string) => value.replaceAll('"', "");
const isKey = (key: string | undefined): key is Key => (keys as readonly (string | undefined)[]).includes(key);

/** Tells whether an install passes all terms. */
export const passes = (row: Filtered, terms: readonly Term[]): boolean => terms.every((t) => holds(row, t) !== t.not);

function holds(row: Filtered, { key, value }: Term): boolean {
  const wanted = value.toLowerCase();
  switch (key) {
    case "state":
      return row.words.some((w) => w === wanted.replaceAll(" ", "_"));
    case "health":
      return row.health === wanted;
    case "app":
      return row.app.toLowerCase() === wanted;
    case "customer":
      return row.customer.toLowerCase() === wanted;
    case "label": {
      const cut = value.indexOf("=");
      if (cut < 0) return value in row.labels;
      return row.labels[value.slice(0, cut)] === value.slice(cut + 1);
    }
    case "release":
      return ofRelease(row.release, wanted);
    case undefined:
      return [row.name, row.app, row.customer].some((t) => t.toLowerCase().includes(wanted));
  }
}

function ofRelease(release: number | undefined, wanted: string): boolean {
  const [, than = "", digits] = /^(<=|>=|<|>)?r?(\d+)$/.exec(wanted) ?? [];
  if (wanted === "none") return release === undefined;
  if (digits === undefined || release === undefined) return false;
  const n = Number(digits);
  if (than === "<") return release < n;
  if (than === "<=") return release <= n;
  if (than === ">") return release > n;
  if (than === ">=") return release >= n;
  return release === n;
}

export interface Completion {
  /** The whole filter with this completion in it, and where typing goes on. */
  text: string;
  shown: string;
  /** How many installs have it; absent for keys. */
  count?: number;
}

/** What could be typed next at the end of a filter. */
export function complete(text: string, rows: readonly Filtered[], most = 8): Completion[] {
  const start = text.search(/(?:[^\s"]|"[^"]*"?)*$/);
  const last = text.slice(start);
  const before = text.slice(0, start);
  const minus = last.startsWith("-") ? "-" : "";
  const typed = last.slice(minus.length);
  const colon = typed.indexOf(":");
  if (colon < 0) {
    if (typed === "" && before.trim() === "" && minus === "") return keys.map((k) => ({ text: `${before}${k}:`, shown: `${k}:` }));
    return keys.filter((k) => k.startsWith(typed) && typed !== "").map((k) => ({ text: `${before}${minus}${k}:`, shown: `${minus}${k}:` }));
  }
  const key = typed.slice(0, colon);
  if (!isKey(key)) return [];
  const given = unquote(typed.slice(colon + 1)).toLowerCase();
  const counted = new Map<string, number>();
  for (const row of rows) for (const v of new Set(valuesOf(row, key))) counted.set(v, (counted.get(v) ?? 0) + 1);
  return [...counted]
    .filter(([v]) => v.toLowerCase().startsWith(given) && v.toLowerCase() !== given)
    .sort(([a, n], [b, m]) => m - n || a.localeCompare(b))
    .slice(0, most)
    .map(([v, count]) => ({ text: `${before}${minus}${term(key, v)} `, shown: `${minus}${term(key, v)}`, count }));
}

/** A term as one types it. */
const term = (key: string, value: string): string => `${key}:${/\s/.test(value) ? `"${value}"` : value}`;

function valuesOf(row: Filtered, key: Key): readonly string[] {
  switch (key) {
    case "state":
      return row.words;
    case "health":
      return [row.health];
    case "app":
      return [row.app];
    case "customer":
      return [row.customer];
    case "release":
      return row.release === undefined ? ["none"] : [`r${row.release}`];
    case "label":
      return Object.entries(row.labels).map(([k, v]) => `${k}=${v}`);
  }
}
