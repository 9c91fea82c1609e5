import { expect, test } from "vitest";
import { understood } from "./views";

test.each<[string | null, string[]]>([
  [null, []],
  ["not json", []],
  ["{}", []],
  ['[{"name":"red","q":"state:unhealthy","sort":3},{"q":"no name"},null]', ["red"]],
])("of %s it keeps %j", (stored, names) => {
  expect(understood(stored).map((v) => v.name)).toEqual(names);
});

test("what is no text of a view is left out", () => {
  expect(understood('[{"name":"red","q":"state:unhealthy","sort":3}]')[0]).toEqual({ name: "red", q: "state:unhealthy" });
});
