import { Fragment } from "react";
import { pieces } from "~/diff/visible";

/** A text that somebody else wrote, with characters that nobody would see written out, and no longer than `most`. */
export function Visible({ children, most = Infinity }: { children: string; most?: number }) {
  const cut = children.length > most;
  return (
    <>
      {pieces(cut ? children.slice(0, most) : children).map(({ text, code }, i) =>
        code ? (
          <mark
            key={i}
            title="a character that is not seen, or that steers text"
            className="mx-px rounded-md bg-warn-ground px-0.5 text-warn"
          >
            {code}
          </mark>
        ) : (
          <Fragment key={i}>{text}</Fragment>
        ),
      )}
      {cut && <span className="text-dim">… {(children.length - most).toLocaleString("en")} more characters</span>}
    </>
  );
}
