// What may stay at the side while one goes elsewhere, as the URL names it. Pure.

/** A log, or a change. */
export interface Kept {
  is: "log" | "change";
  id: string;
}

/** Reads what a URL keeps; nothing where it names neither. */
export function kept(text: string | undefined): Kept | undefined {
  const found = /^(log|change):([A-Za-z0-9_]{1,80})$/.exec(text ?? "");
  return found ? { is: found[1] as Kept["is"], id: found[2]! } : undefined;
}

export const keep = ({ is, id }: Kept): string => `${is}:${id}`;

const least = 320; // px
const first = 480;

/** How wide the side is, so that at least as much is left for the page. */
export const widthOf = (wanted: number | null, window: number): number =>
  Math.round(Math.max(least, Math.min(wanted || first, window - 2 * least)));
