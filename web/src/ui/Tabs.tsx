import { Link } from "@tanstack/react-router";

interface TabsProps {
  label: string;
  tabs: readonly (readonly [key: string, name: string])[];
  at: string;
}

/** Parts of a page; the URL says which. The first one is its default. */
export function Tabs({ label, tabs, at }: TabsProps) {
  return (
    <nav aria-label={label} className="mb-4 flex gap-1 overflow-x-auto border-b border-line">
      {tabs.map(([key, name], i) => (
        <Link
          key={key}
          to="."
          search={{ tab: i === 0 ? undefined : key } as never}
          activeOptions={{ exact: true, explicitUndefined: true }}
          aria-current={key === at ? "page" : undefined}
          className="-mb-px border-b-2 border-transparent px-3 py-2 whitespace-nowrap text-dim hover:text-ink data-at:border-accent data-at:font-medium data-at:text-ink"
          data-at={key === at || undefined}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}
