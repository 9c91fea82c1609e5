/** What is done with an object, as a sign that says it without its colour. */
export const signs: Record<string, [sign: string, colour: string]> = {
  create: ["+", "text-good"],
  delete: ["−", "text-bad"],
  destroy: ["−", "text-bad"],
  forget: ["−", "text-bad"],
  replace: ["±", "text-bad"],
  update: ["~", "text-warn"],
  run: ["▸", "text-link"],
};
