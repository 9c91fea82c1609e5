import { Fragment } from "react";
import { pieces } from "~/diff/visible";

/** A text that somebody else wrote, with characters that nobody would see written out. */
export function Visible({ children }: { children: string }) {
  return (
    <>
      {pieces(children).map(({ text, code }, i) =>
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
    </>
  );
}
