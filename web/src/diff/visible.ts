// Finds the characters of a text that nobody sees: they steer, reorder or take no room.
// The same set as package visible, by which the command line writes them out; here also
// long runs of combining marks, which would be drawn over other lines. Pure.

/** A piece of a text; `code` names the one hidden character that it stands for. */
export interface Piece {
  text: string;
  code?: string;
}

const hidden =
  // eslint-disable-next-line no-control-regex -- these are what it looks for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}\u{e0000}-\u{e0fff}\ufdd0-\ufdef\ufffe\uffff]|\p{Cs}|(?<=\p{M}{8})\p{M}+/gu;

/** So many hidden characters of a text get a mark of their own; later ones are written between the others. */
const mostMarked = 50;

/** The pieces of a text, in order. A line feed and a tab are themselves. */
export function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  let kept = 0;
  let marked = 0;
  for (const { 0: char, index } of text.matchAll(hidden)) {
    if (marked++ === mostMarked) {
      out.push({ text: written(text.slice(kept)) });
      return out;
    }
    if (index > kept) out.push({ text: text.slice(kept, index) });
    out.push({ text: char, code: codeOf(char) });
    kept = index + char.length;
  }
  if (kept < text.length || out.length === 0) out.push({ text: text.slice(kept) });
  return out;
}

/** A text for where no mark can stand, such as a title: hidden characters by their names. */
export const written = (text: string): string => text.replace(hidden, (char) => `[${codeOf(char)}]`);

const codeOf = (char: string) =>
  /^\p{M}{2,}/u.test(char) ? `${[...char].length} marks` : `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
