import { expect, test } from "vitest";
import { digestOf, foldLines, hasLines, objectsOf, type PlanNode, type Row, rowsOf, textOf, type View } from "./flatten";
import { lineDiff } from "./lines";

const view: View = {
  split: false,
  foldedGroups: new Set(["unchanged"]),
  turned: new Set(),
  open: true,
  unfolded: new Set(),
  lines: lineDiff,
};
const object = (name: string, action: string, type: string, ...children: PlanNode[]): PlanNode => ({
  kind: "resource",
  name,
  type,
  action,
  address: `${type}.${name}`,
  children,
});
const field = (name: string, before?: unknown, after?: unknown): PlanNode => ({
  kind: "attribute",
  name,
  ...(before === undefined ? {} : { before: JSON.stringify(before) }),
  ...(after === undefined ? {} : { after: JSON.stringify(after) }),
});
const brief = (row: Row): string => {
  switch (row.is) {
    case "group":
      return `# ${row.risk} ${row.count}${row.folded ? " folded" : ""}`;
    case "object":
      return `${row.number} ${row.object.within.join("/")}${row.object.within.length ? "/" : ""}${row.object.name}`;
    case "field":
      return `  ${row.field.name}`;
    case "same":
      return `    … ${row.count}`;
    case "lines":
      return row.unified ? `    ${row.unified.sign}${row.unified.text}` : `    ${row.left?.text ?? ""} | ${row.right?.text ?? ""}`;
  }
};

test("what can break most comes first, and what stays is folded", () => {
  const roots: PlanNode[] = [
    object("same", "no-op", "terraform_data"),
    object("web", "update", "Deployment.apps", field("spec.replicas", 1, 2)),
    { kind: "module", name: "net", address: "module.net", children: [object("gone", "delete", "aws_vpc")] },
    object("db", "update", "aws_db_instance"),
    object("again", "replace", "aws_instance"),
    object("admin", "create", "aws_iam_role"),
  ];
  expect(rowsOf(objectsOf(roots), view).map(brief)).toEqual([
    "# delete 1",
    "1 net/gone",
    "# replace 1",
    "2 again",
    "# access 1",
    "3 admin",
    "# data 1",
    "4 db",
    "# rest 1",
    "5 web",
    "  spec.replicas",
    "# unchanged 1 folded",
  ]);
});

const long = Array.from({ length: 20 }, (_, i) => `line ${i + 1}`);
const changed = long.with(9, "other");

test("a text of several lines is compared by line, and unchanged lines are folded", () => {
  const rows = rowsOf(objectsOf([object("c", "update", "Deployment", field("data", long.join("\n"), changed.join("\n")))]), view);
  expect(rows.slice(3).map(brief)).toEqual([
    "    … 6",
    "     line 7",
    "     line 8",
    "     line 9",
    "    -line 10",
    "    +other",
    "     line 11",
    "     line 12",
    "     line 13",
    "    … 7",
  ]);
});

test("side by side, what was stands next to what will be", () => {
  const roots = [object("c", "update", "Deployment", field("data", "a\nb\nc\nd", "a\nX\nd"))];
  expect(
    rowsOf(objectsOf(roots), { ...view, split: true })
      .slice(3)
      .map(brief),
  ).toEqual(["    a | a", "    b | X", "    c | ", "    d | d"]);
});

test("a turned object is folded, and its number stays", () => {
  const roots = [object("a", "update", "x", field("f", 1, 2)), object("b", "update", "x", field("f", 1, 2))];
  expect(rowsOf(objectsOf(roots), { ...view, turned: new Set(["x.a"]) }).map(brief)).toEqual(["# rest 2", "1 a", "2 b", "  f"]);
});

test("rows have keys of their own, also when a plan names an object twice", () => {
  const twice = object("a", "update", "x", field("f", "1\n2", "1\n3"));
  const keys = rowsOf(objectsOf([twice, twice]), view).map((r) => r.key);
  expect(new Set(keys).size).toBe(keys.length);
});

test("outputs are an object of their own", () => {
  expect(rowsOf(objectsOf([], [field("url", "a", "b")]), view).map(brief)).toEqual(["# rest 1", "1 outputs", "  url"]);
});

test.each<[string, string, string]>([
  ["a text loses its quotes", '"Ahoy"', "Ahoy"],
  ["a number stays", "3", "3"],
  ["an object is laid out", '{"a":[1]}', '{\n  "a": [\n    1\n  ]\n}'],
  ["no JSON stays", "(not shown)", "(not shown)"],
  ["nothing is nothing", "", ""],
])("%s", (_, value, want) => {
  expect(textOf(value)).toBe(want);
});

test.each([
  ["(sensitive, digest 0123456789ab)", "0123456789ab"],
  ["(sensitive)", undefined],
  ['"(sensitive, digest 0123456789ab)"', undefined],
])("the digest of %s", (value, want) => {
  expect(digestOf(value)).toBe(want);
});

test("a hidden value has no lines", () => {
  expect(hasLines({ kind: "attribute", name: "x", before: '"a\\nb"', hidden: true })).toBe(false);
});

test("beyond a budget, long texts are compared when somebody asks", () => {
  const big = `${"x".repeat(1_200_000)}\n`;
  const objects = objectsOf([object("a", "update", "x", field("f", big, "y\n")), object("b", "update", "x", field("f", big, "y\n"))]);
  const asked = (rows: Row[]) => rows.flatMap((r) => (r.is === "field" ? [r.lines] : []));
  expect(asked(rowsOf(objects, view))).toEqual(["shown", "asked"]);
  expect(asked(rowsOf(objects, { ...view, unfolded: new Set(["x.b\nf"]) }))).toEqual(["shown", "shown"]);
});

test("one unchanged line between changes is not folded", () => {
  const lines = lineDiff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n");
  expect(foldLines(lines).filter((l) => "same" in l)).toEqual([]);
});

test("10,000 objects are flattened in one pass", () => {
  const roots = Array.from({ length: 10_000 }, (_, i) => object(`o${i}`, "update", "Deployment", field("a", 1, 2), field("b", "x", "y")));
  const begin = performance.now();
  const rows = rowsOf(objectsOf(roots), view);
  expect(rows).toHaveLength(30_001);
  expect(performance.now() - begin).toBeLessThan(1_000);
});
