import { expect, test } from "vitest";
import { type Span, spans } from "./ansi";

const e = "\u001b[";
const s = (text: string, look = ""): Span => ({ text, look });

test.each<[string, string, Span[]]>([
  ["nothing", "", []],
  ["no colour", "plain", [s("plain")]],
  ["a colour and its end", `a${e}31mb${e}0mc`, [s("a"), s("b", "text-bad"), s("c")]],
  ["an empty code ends all", `${e}1;32mb${e}mc`, [s("b", "text-good font-semibold"), s("c")]],
  ["bold goes, the colour stays", `${e}1;33ma${e}22mb`, [s("a", "text-warn font-semibold"), s("b", "text-warn")]],
  ["a ground", `${e}41ma${e}49mb`, [s("a", "bg-bad-ground"), s("b")]],
  ["bright ones look like the others", `${e}94ma`, [s("a", "text-link")]],
  ["one of 256", `${e}38;5;196ma`, [s("a", "text-bad")]],
  ["a true colour, and what comes behind it", `${e}38;2;0;200;0;1ma`, [s("a", "text-good font-semibold")]],
  ["colons too", `${e}38:5:196ma`, [s("a", "text-bad")]],
  ["a cut true colour", `${e}38;2ma`, [s("a", "text-dim")]],
  ["an unknown code", `${e}777ma`, [s("a")]],
  ["moving the cursor stays text", `a${e}2Jb`, [s(`a${e}2Jb`)]],
  ["a link of a terminal stays text", "\u001b]8;;javascript:alert(1)\u0007x", [s("\u001b]8;;javascript:alert(1)\u0007x")]],
  ["HTML is text", `${e}31m<img src=x onerror=alert(1)>`, [s("<img src=x onerror=alert(1)>", "text-bad")]],
])("%s", (_, line, want) => {
  expect(spans(line)).toEqual(want);
});

test("a line of thousands of colours is a few pieces, and keeps its text", () => {
  const found = spans(`${e}31ma${e}32mb`.repeat(5_000));
  expect(found.length).toBeLessThan(200);
  expect(found.map((f) => f.text).join("")).toBe("ab".repeat(5_000));
});
