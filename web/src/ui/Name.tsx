import { Theirs } from "./Theirs";

/** A name that may be long: it breaks in the middle and never pushes the layout. */
export function Name({ children }: { children: string }) {
  const tail = children.length > 24 ? 8 : 0;
  return (
    <span className="inline-flex max-w-full min-w-0 align-bottom" title={tail ? children : undefined}>
      <Theirs className="truncate">{tail ? children.slice(0, -tail) : children}</Theirs>
      {tail > 0 && <Theirs className="shrink-0">{children.slice(-tail)}</Theirs>}
    </span>
  );
}
