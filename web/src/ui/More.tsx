import { Button } from "./Button";

/** Reads the next page of a list; nothing when there is none. */
export function More({ of }: { of: { more: (() => void) | undefined; isFetchingNextPage: boolean } }) {
  if (!of.more) return null;
  return (
    <Button className="mt-2" onClick={of.more} disabled={of.isFetchingNextPage}>
      {of.isFetchingNextPage ? "Reading…" : "Show more"}
    </Button>
  );
}
