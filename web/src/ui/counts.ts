/** What a plan would do, in words: "1 to replace, 3 to update"; nothing without counts. */
export function counts(of: { create: number; update: number; replace: number; delete: number } | undefined): string | undefined {
  if (!of) return undefined;
  const parts = (["delete", "replace", "create", "update"] as const).filter((verb) => of[verb] > 0).map((verb) => `${of[verb]} to ${verb}`);
  return parts.join(", ") || "no change";
}
