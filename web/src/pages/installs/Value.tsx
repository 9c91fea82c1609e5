import { Visible } from "~/ui/Visible";

/** A value of any shape, in one line where it fits. */
export function Value({ children }: { children: unknown }) {
  const text = typeof children === "string" ? children : JSON.stringify(children, undefined, 1);
  if (text === undefined) return null;
  return (
    <bdi className="inline-block max-w-full py-1 font-mono text-xs break-all whitespace-pre-wrap">
      <Visible>{text.length > 2000 ? `${text.slice(0, 2000)}…` : text}</Visible>
    </bdi>
  );
}
