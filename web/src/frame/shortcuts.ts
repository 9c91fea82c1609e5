import { useEffect, useRef } from "react";

/** What keys do: "j", "g i" (one after the other), "mod+k" (Ctrl or ⌘). */
export type Shortcuts = Record<string, (() => void) | undefined>;

const patience = 1200; // ms between the two keys of a sequence

/** Listens to keys while the caller is on the screen, but never while somebody types. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const current = useRef(shortcuts);
  useEffect(() => {
    current.current = shortcuts;
  });
  useEffect(() => {
    let first = "";
    let at = 0;
    const pressed = (e: KeyboardEvent) => {
      if (e.defaultPrevented || e.altKey) return;
      const mod = e.metaKey || e.ctrlKey;
      if (!mod && typing(e.target)) return;
      const key = (mod ? "mod+" : "") + (e.key.length === 1 ? e.key.toLowerCase() : e.key);
      const both = first && e.timeStamp - at < patience ? `${first} ${key}` : "";
      const act = (both && current.current[both]) || current.current[key];
      first = key;
      at = e.timeStamp;
      if (!act) return;
      first = "";
      e.preventDefault();
      act();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) || target.closest("[role=dialog]") !== null)
  );
}
