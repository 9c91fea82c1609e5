import { expect, test } from "vitest";
import { pieces, written } from "./visible";

const shown = (text: string) =>
  pieces(text)
    .map((p) => (p.code ? `⟨${p.code}⟩` : p.text))
    .join("");

test.each<[string, string, string]>([
  ["plain text stays", "image: web:1.2", "image: web:1.2"],
  ["nothing", "", ""],
  ["a line feed and a tab stay", "a\n\tb", "a\n\tb"],
  ["a carriage return lets a line overwrite itself", "deny\rallow", "deny⟨U+000D⟩allow"],
  ["an escape steers a terminal", "\u001b[31mred", "⟨U+001B⟩[31mred"],
  ["a control character of ISO 8859", "\u009b0m", "⟨U+009B⟩0m"],
  ["an override reorders what follows", "user\u202eadmin", "user⟨U+202E⟩admin"],
  ["isolates reorder too", "\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"],
  ["a zero-width space takes no room", "ad\u200bmin", "ad⟨U+200B⟩min"],
  ["a soft hyphen too", "ad\u00admin", "ad⟨U+00AD⟩min"],
  ["a filler that looks like nothing", "a\u3164b", "a⟨U+3164⟩b"],
  ["a variation selector", "x\ufe0f", "x⟨U+FE0F⟩"],
  ["a tag outside the first plane", "x\u{e0041}y", "x⟨U+E0041⟩y"],
  ["a line separator", "a\u2028b", "a⟨U+2028⟩b"],
  ["half a surrogate pair", "a\ud800b", "a⟨U+D800⟩b"],
  ["letters of other scripts stay", "Zoë Žižek 東京 עברית", "Zoë Žižek 東京 עברית"],
  ["a face stays", "🙂", "🙂"],
  ["marks of a letter stay", "e\u0301\u0323", "e\u0301\u0323"],
  ["a tower of marks is cut", "e" + "\u0301".repeat(30), "e" + "\u0301".repeat(8) + "⟨22 marks⟩"],
  ["two in a row are two", "\u202a\u202b", "⟨U+202A⟩⟨U+202B⟩"],
])("%s", (_, text, want) => {
  expect(shown(text)).toBe(want);
});

test("the pieces are the text", () => {
  const text = "a\u202eb\u0000c\n";
  expect(
    pieces(text)
      .map((p) => p.text)
      .join(""),
  ).toBe(text);
});

test("thousands of hidden characters are a few pieces", () => {
  const found = pieces("a\u202e".repeat(10_000));
  expect(found.length).toBeLessThan(200);
  expect(found.filter((p) => !p.code).every((p) => !p.text.includes("\u202e"))).toBe(true);
});

test("a title says them by name", () => {
  expect(written("gnp\u202egnp.exe")).toBe("gnp[U+202E]gnp.exe");
});
