import type { ReactNode } from "react";
import { Theirs } from "./Theirs";

interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** Numbers stand at the right. */
  number?: boolean;
  /** Left out on small screens. */
  wide?: boolean;
}

interface TableProps<T> {
  /** What the table holds, for screen readers. */
  label: string;
  rows: readonly T[];
  id: (row: T) => string;
  columns: readonly Column<T>[];
}

/** Rows of a list that is short enough to be shown whole. */
export function Table<T>({ label, rows, id, columns }: TableProps<T>) {
  const cell = (c: Column<T>) => `px-2 ${c.number ? "text-right" : "text-left"} ${c.wide ? "hidden lg:table-cell" : ""}`;
  return (
    <div className="overflow-x-auto" role="group" aria-label={label} tabIndex={0}>
      <table className="w-full border-collapse">
        <thead>
          <tr className="h-8 border-b border-line text-xs text-dim">
            {columns.map((c) => (
              <th key={c.head} scope="col" className={`font-medium whitespace-nowrap ${cell(c)}`}>
                {c.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)} className="h-10 border-b border-line hover:bg-hover">
              {columns.map((c) => (
                <td key={c.head} className={`max-w-80 truncate ${cell(c)}`}>
                  <Content>{c.cell(row)}</Content>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Content = ({ children }: { children: ReactNode }) => (typeof children === "string" ? <Theirs>{children}</Theirs> : children);
