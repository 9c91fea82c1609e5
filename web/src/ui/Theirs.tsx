import { Visible } from "./Visible";

interface TheirsProps {
  children: string;
  className?: string;
  title?: string;
}

/** Names, reasons and notes are short; nothing that is longer stops a page. */
const longest = 4_000;

/** A text from outside: it turns nothing around it, and what nobody would see in it is written out. */
export function Theirs({ children, className, title }: TheirsProps) {
  return (
    <bdi className={className} title={title}>
      <Visible most={longest}>{children}</Visible>
    </bdi>
  );
}
