// Finds the characters of a text that nobody sees: they steer, reorder or take no room.
// The same set as package visible, by which the command line writes them out. Pure.

/** A piece of a text; `code` names the one hidden character that it stands for. */
export interface Piece {
  text: string;
  code?: string;
}

const hidden =
  // eslint-disable-next-line no-control-regex -- these are what it looks for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}\u{e0000}-\u{e0fff}\ufdd0-\ufdef\ufffe\uffff]|\p{Cs}/gu;

/** The pieces of a text, in order. A line feed and a tab are themselves. */
export function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  let kept = 0;
  for (const { 0: char, index } of text.matchAll(hidden)) {
    if (index > kept) out.push({ text: text.slice(kept, index) });
    out.push({ text: char, code: codeOf(char) });
    kept = index + char.length;
  }
  if (kept < text.length || out.length === 0) out.push({ text: text.slice(kept) });
  return out;
}

const codeOf = (char: string) => `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
