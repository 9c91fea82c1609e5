// Filters under names, kept in this browser.
import { useSyncExternalStore } from "react";

/** What a view is: the search of the page's URL. */
export interface View {
  name: string;
  q?: string | undefined;
  group?: string | undefined;
  sort?: string | undefined;
  swap?: string | undefined;
}

const key = "berth.views.installs";
let known: readonly View[] | undefined;
const listeners = new Set<() => void>();

/** Reads what was stored; what is no view is left out. */
export function understood(stored: string | null): View[] {
  try {
    const all = JSON.parse(stored ?? "[]") as unknown;
    if (!Array.isArray(all)) return [];
    return all.flatMap((v: Partial<Record<keyof View, unknown>> | null) => {
      if (typeof v?.name !== "string") return [];
      const text = (of: unknown) => (typeof of === "string" ? of : undefined);
      return [{ name: v.name, q: text(v.q), group: text(v.group), sort: text(v.sort), swap: text(v.swap) }];
    });
  } catch {
    return [];
  }
}

function read(): readonly View[] {
  try {
    return (known ??= understood(localStorage.getItem(key)));
  } catch {
    return (known ??= []); // storage is blocked
  }
}

function write(views: readonly View[]) {
  known = views;
  try {
    localStorage.setItem(key, JSON.stringify(views));
  } catch {
    // storage is blocked: the views last as long as the page
  }
  listeners.forEach((tell) => tell());
}

/** The views by name; a name that is there already is replaced. */
export const save = (view: View) =>
  write([...read().filter((v) => v.name !== view.name), view].sort((a, b) => a.name.localeCompare(b.name)));
export const remove = (name: string) => write(read().filter((v) => v.name !== name));

function subscribe(tell: () => void) {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

export const useViews = (): readonly View[] => useSyncExternalStore(subscribe, read);
