import { Link, useMatches } from "@tanstack/react-router";
import { Name } from "~/ui/Name";

/** A part of where one is, and its URL. Routes say theirs in staticData or by their loader. */
interface Crumb {
  name: string;
  href: string;
}

/** The way to this page; each part is a link. */
export function Crumbs() {
  const crumbs = useMatches({
    select: (matches) => matches.flatMap((m) => (m.context as { crumbs?: Crumb[] }).crumbs ?? []).filter(unique),
  });
  return (
    <nav aria-label="Where this page is" className="flex min-w-0 items-center gap-1.5 text-dim">
      {crumbs.map(({ name, href }, i) => (
        <span key={href} className="flex min-w-0 items-center gap-1.5">
          {i > 0 && <span aria-hidden="true">/</span>}
          <Link
            to={href}
            aria-current={i === crumbs.length - 1 ? "page" : undefined}
            className="min-w-0 hover:text-ink aria-[current=page]:font-medium aria-[current=page]:text-ink"
          >
            <Name>{name}</Name>
          </Link>
        </span>
      ))}
    </nav>
  );
}

// A route passes its context, crumbs included, on to those below it.
const unique = (crumb: Crumb, i: number, all: Crumb[]) => all.findIndex((c) => c.href === crumb.href) === i;
