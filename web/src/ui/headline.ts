// The first words of a long text: what stands where there is room for a line. Pure.

const most = 160;
const least = 30;

/**
 * What a text says first: up to its first line, or the last colon or end of a sentence
 * within 160 characters. Short texts are whole.
 */
export function headline(text: string): string {
  const line = text.split("\n", 1)[0]!.trim();
  if (line.length <= most) return line;
  const start = line.slice(0, most);
  const end = Math.max(start.lastIndexOf(": "), start.lastIndexOf(". "));
  if (end >= least) return `${line.slice(0, end)}…`;
  const space = start.lastIndexOf(" ");
  return `${line.slice(0, space >= least ? space : most)}…`;
}
