// Reads the colours of a line of a log. Nothing else that a terminal would obey is: it
// stays in the text and is shown as what it is. Pure.

/** A piece of a line and how it looks: classes of ours, whatever the line asks for. */
export interface Span {
  text: string;
  look: string;
}

interface Style {
  fg?: string;
  bg?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
}

// The eight colours of terminals as our tokens, which are readable in both themes.
const fg = ["text-dim", "text-bad", "text-good", "text-warn", "text-link", "text-ask", "text-busy", "text-ink"];
const bg = [
  "bg-hover",
  "bg-bad-ground",
  "bg-good-ground",
  "bg-warn-ground",
  "bg-busy-ground",
  "bg-ask-ground",
  "bg-busy-ground",
  "bg-raised",
];

// eslint-disable-next-line no-control-regex -- what colours begin with
const sgr = /\u001b\[([\d;:]*)m/g;

/** A line has so many colours at most; a longer rest looks like the last of them. */
const mostSpans = 100;

/** The pieces of a line. */
export function spans(line: string): Span[] {
  if (!line.includes("\u001b[")) return line === "" ? [] : [{ text: line, look: "" }];
  const out: Span[] = [];
  let style: Style = {};
  let kept = 0;
  const push = (text: string) => {
    if (text !== "") out.push({ text, look: lookOf(style) });
  };
  for (const found of line.matchAll(sgr)) {
    if (out.length >= mostSpans) {
      push(line.slice(kept).replaceAll(sgr, ""));
      return out;
    }
    push(line.slice(kept, found.index));
    style = apply(style, found[1] ?? "");
    kept = found.index + found[0].length;
  }
  push(line.slice(kept));
  return out;
}

function lookOf({ fg, bg, bold, dim, italic, underline }: Style): string {
  return [dim && !fg ? "text-dim" : fg, bg, bold && "font-semibold", italic && "italic", underline && "underline"]
    .filter(Boolean)
    .join(" ");
}

function apply(style: Style, codes: string): Style {
  const list = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
  let next = { ...style };
  for (let i = 0; i < list.length; i++) {
    const code = list[i]!;
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 22) next = without(next, "bold", "dim");
    else if (code === 23) next = without(next, "italic");
    else if (code === 24) next = without(next, "underline");
    else if (code === 39) next = without(next, "fg");
    else if (code === 49) next = without(next, "bg");
    else if (code >= 30 && code <= 37) next.fg = fg[code - 30]!;
    else if (code >= 90 && code <= 97) next.fg = fg[code - 90]!;
    else if (code >= 40 && code <= 47) next.bg = bg[code - 40]!;
    else if (code >= 100 && code <= 107) next.bg = bg[code - 100]!;
    else if (code === 38 || code === 48) {
      // 256 colours (5;n) and true ones (2;r;g;b): the nearest of the eight.
      const kind = list[i + 1];
      const near =
        kind === 5 ? ofIndex(list[i + 2] ?? 0) : kind === 2 ? ofRGB(list[i + 2] ?? 0, list[i + 3] ?? 0, list[i + 4] ?? 0) : undefined;
      i += kind === 5 ? 2 : kind === 2 ? 4 : 0;
      if (near !== undefined && code === 38) next.fg = fg[near]!;
      if (near !== undefined && code === 48) next.bg = bg[near]!;
    }
  }
  return next;
}

function without(style: Style, ...names: (keyof Style)[]): Style {
  const next = { ...style };
  for (const name of names) delete next[name];
  return next;
}

function ofIndex(n: number): number {
  if (n < 16) return n % 8;
  if (n >= 232) return n < 244 ? 0 : 7;
  const level = n - 16;
  return ofRGB(Math.floor(level / 36) * 51, (Math.floor(level / 6) % 6) * 51, (level % 6) * 51);
}

function ofRGB(r: number, g: number, b: number): number {
  const most = Math.max(r, g, b);
  if (most - Math.min(r, g, b) < 40) return most < 128 ? 0 : 7;
  const half = most / 2 + 1;
  return (r > half ? 1 : 0) + (g > half ? 2 : 0) + (b > half ? 4 : 0);
}
