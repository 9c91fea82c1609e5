// The fleet: each install with its components, and what can be done with many at once.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useRouter, useSearch } from "@tanstack/react-router";
import { createContext, type MouseEvent, Suspense, useCallback, useContext, useDeferredValue, useMemo, useState } from "react";
import { berth } from "~/api/client";
import { useShortcuts } from "~/frame/shortcuts";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Glyph } from "~/ui/State";
import { BulkBar } from "./BulkBar";
import { hrefOf, installStanding, ResourceCell, Signs } from "./Cell";
import type { Operation } from "~/command";
import { parse, passes } from "./filter";
import { FilterBar } from "./FilterBar";
import { type Line, Matrix } from "./Matrix";
import { NewInstall } from "./NewInstall";
import { between, components, grouped, groupings, type Row, type Sort, sorted, sorts } from "./rows";
import { type Fleet as Known, useFleet } from "./useFleet";
import { Views } from "./Views";
import { Week } from "./Week";
import { Theirs } from "~/ui/Theirs";
import { late } from "~/late";

const Bulk = late(() => import("./Bulk"));

const field = "h-8 min-w-0 flex-1 sm:flex-none rounded-md border border-line-strong bg-ground px-2";

export function Fleet() {
  const fleet = useFleet();
  return (
    <div className="flex h-[calc(100dvh-9rem)] flex-col gap-3 sm:h-[calc(100dvh-5.5rem)]">
      <title>Installs · Berth</title>
      <h1 className="sr-only">Installs</h1>
      <Answer of={{ data: fleet.rows, error: fleet.error, refetch: fleet.refetch }} lines={9}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty
              action={
                <span className="flex flex-wrap items-center gap-2">
                  <NewInstall look="main" />
                  <Command>berth installs create NAME --app APP --customer CUSTOMER</Command>
                </span>
              }
            >
              No install yet. Each customer's copy of an app will be a line here, with its components, their state and their release.
            </Empty>
          ) : (
            <Installs fleet={fleet} rows={rows} />
          )
        }
      </Answer>
    </div>
  );
}

function Installs({ fleet, rows: all }: { fleet: Known; rows: Row[] }) {
  const search = useSearch({ from: "/inside/installs" });
  const navigate = useNavigate({ from: "/installs" });
  const router = useRouter();
  const set = (more: Partial<typeof search>) => void navigate({ search: { ...search, ...more }, replace: true });
  const swap = search.swap !== undefined;
  const sort = sorts.find((s) => s === search.sort) ?? "name";
  const q = useDeferredValue(search.q ?? "");
  const group = swap ? undefined : search.group;
  const asks = useAsks();

  const groups = useMemo(() => {
    const terms = parse(q);
    return grouped(
      sorted(
        all.filter((row) => passes(row, terms)),
        sort,
      ),
      group,
    );
  }, [all, q, sort, group]);
  const rows = useMemo(() => groups.flatMap((g) => g.rows), [groups]);
  const byId = useMemo(() => new Map(all.map((r) => [r.id, r])), [all]);
  const names = useMemo(() => components(rows.flatMap((r) => fleet.cells.get(r.id) ?? [])), [rows, fleet.cells]);

  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [last, setLast] = useState<string>();
  const [bulk, setBulk] = useState<Operation>();
  const pick = (id: string, shift: boolean) => {
    const ids =
      shift && last
        ? between(
            rows.map((r) => r.id),
            last,
            id,
          )
        : [id];
    const on = !picked.has(id);
    setPicked(new Set(on ? [...picked, ...ids] : [...picked].filter((p) => !ids.includes(p))));
    setLast(id);
  };

  const [at, setAt] = useState<string>();
  const index = rows.findIndex((r) => r.id === at);
  const move = (by: number) => setAt(rows[Math.max(0, Math.min(index + by, rows.length - 1))]?.id);
  const open = (href: string) => router.history.push(href);
  useShortcuts({
    j: swap ? undefined : () => move(1),
    k: swap ? undefined : () => move(-1),
    x: at ? () => pick(at, false) : undefined,
    Enter: rows[index] && (() => open(hrefOf(rows[index]!.name))),
    Escape: picked.size > 0 ? () => setPicked(new Set()) : undefined,
  });
  // One listener for all links: a thousand cells stay cheap.
  const follow = (e: MouseEvent) => {
    const href = e.target instanceof Element ? e.target.closest("a")?.getAttribute("href") : undefined;
    if (!href?.startsWith("/ui/") || e.defaultPrevented || e.metaKey || e.ctrlKey || e.shiftKey || e.button !== 0) return;
    e.preventDefault();
    open(href);
  };

  const { cells } = fleet;
  const cell = useCallback(
    (line: string, column: string) => {
      const [id, name] = swap ? [column, line] : [line, column];
      const row = byId.get(id);
      return row && <ResourceCell row={row} cell={cells.get(id)?.get(name)} asks={asks.has(`${id} ${name}`)} />;
    },
    [swap, byId, cells, asks],
  );
  const installs = useMemo<Line[]>(
    () =>
      groups.flatMap((g) => [
        ...(group ? [{ key: `group ${g.name}`, group: true, head: <GroupHead name={g.name} rows={g.rows} /> }] : []),
        ...g.rows.map((row) => ({ key: row.id, head: <InstallHead row={row} pickable /> })),
      ]),
    [groups, group],
  );
  const parts = useMemo<Line[]>(
    () =>
      names.map((name) => ({
        key: name,
        head: (
          <Theirs className="truncate font-medium" title={name}>
            {name}
          </Theirs>
        ),
      })),
    [names],
  );
  const heads = useMemo<Line[]>(() => rows.map((row) => ({ key: row.id, head: <InstallHead row={row} /> })), [rows]);
  const chosen = rows.filter((r) => picked.has(r.id));

  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <FilterBar value={search.q ?? ""} rows={all} onChange={(q) => set({ q: q || undefined })} />
        <div className="flex w-full gap-2 sm:w-auto">
          <select
            aria-label="Group by"
            className={field}
            value={search.group ?? ""}
            onChange={(e) => set({ group: e.target.value || undefined })}
            disabled={swap}
          >
            <option value="">No groups</option>
            {groupings(all).map((g) => (
              <option key={g} value={g}>
                By {g}
              </option>
            ))}
          </select>
          <select
            aria-label="Sort by"
            className={field}
            value={sort}
            onChange={(e) => set({ sort: e.target.value === "name" ? undefined : e.target.value })}
          >
            {sorts.map((s) => (
              <option key={s} value={s}>
                {sortWords[s]}
              </option>
            ))}
          </select>
          <Button aria-pressed={swap} onClick={() => set({ swap: swap ? undefined : "components" })} title="Installs as columns">
            Swap
          </Button>
          <Views search={search} onOpen={(view) => void navigate({ search: view })} />
          <NewInstall />
        </div>
        <span role="status" className="ml-auto text-xs text-dim tabular-nums">
          {rows.length < all.length && `${rows.length} of `}
          {all.length} {all.length === 1 ? "install" : "installs"}
          {fleet.filling && ", reading components…"}
        </span>
      </div>
      {rows.length === 0 ? (
        <Empty action={<Button onClick={() => set({ q: undefined })}>Clear the filter</Button>}>No install passes this filter.</Empty>
      ) : (
        <div className="flex min-h-0 flex-1 flex-col" onClick={follow}>
          <Picking value={{ picked, pick }}>
            <Matrix
              label={swap ? "Components of all installs" : "Installs and their components"}
              corner={swap ? "Component" : <PickAll all={rows} picked={picked} onPick={setPicked} />}
              lines={swap ? parts : installs}
              chosen={at}
              columns={swap ? heads : parts}
              cell={cell}
              columnWidth={swap ? 210 : 92}
            />
          </Picking>
        </div>
      )}
      {chosen.length > 0 && <BulkBar rows={chosen} onClear={() => setPicked(new Set())} onStart={setBulk} />}
      <Suspense>
        {bulk && (
          <Bulk
            operation={bulk}
            installs={chosen.map((r) => r.name)}
            onClose={() => {
              setBulk(undefined);
            }}
          />
        )}
      </Suspense>
    </>
  );
}

const sortWords: Record<Sort, string> = {
  name: "By name",
  health: "Worst first",
  release: "Oldest release first",
  customer: "By customer",
  newest: "Newest first",
};

/** Which resources wait for a decision. */
function useAsks(): ReadonlySet<string> {
  const { data } = useQuery({
    queryKey: ["/changes", { query: { state: "proposed", all: true } }],
    queryFn: async ({ signal }) => {
      const found: string[] = [];
      for await (const c of berth.list("/changes", { query: { state: "proposed" }, signal }))
        if (c.resource) found.push(`${c.install.id} ${c.resource.name}`);
      return found;
    },
  });
  return useMemo(() => new Set(data), [data]);
}

interface Picks {
  picked: ReadonlySet<string>;
  pick: (id: string, shift: boolean) => void;
}

const Picking = createContext<Picks>({ picked: new Set(), pick: () => undefined });

function Pick({ row }: { row: Row }) {
  const { picked, pick } = useContext(Picking);
  return (
    <input
      type="checkbox"
      aria-label={`Select ${row.name}`}
      checked={picked.has(row.id)}
      onClick={(e) => pick(row.id, e.shiftKey)}
      onChange={() => undefined}
      className="size-4 shrink-0 accent-(--color-accent)"
    />
  );
}

function InstallHead({ row, pickable = false }: { row: Row; pickable?: boolean }) {
  const { tone, word } = installStanding(row);
  return (
    <>
      {pickable && <Pick row={row} />}
      <Glyph tone={tone} />
      <a
        href={hrefOf(row.name)}
        title={`${row.name}: ${word} · ${row.app} · ${row.customer}`}
        className="min-w-0 truncate text-sm font-medium text-ink hover:underline"
      >
        <Theirs>{row.name}</Theirs>
        <span className="sr-only">, {word}</span>
      </a>
      <Signs row={row} />
      <Week install={row.id} />
    </>
  );
}

function GroupHead({ name, rows }: { name: string; rows: readonly Row[] }) {
  const bad = rows.filter((r) => r.health === "unhealthy").length;
  return (
    <span className="flex min-w-0 items-center gap-2 text-xs">
      <Theirs className="truncate font-semibold">{name}</Theirs>
      <span className="text-dim tabular-nums">{rows.length}</span>
      {bad > 0 && <span className="text-bad tabular-nums">{bad} unhealthy</span>}
    </span>
  );
}

function PickAll({
  all,
  picked,
  onPick,
}: {
  all: readonly Row[];
  picked: ReadonlySet<string>;
  onPick: (ids: ReadonlySet<string>) => void;
}) {
  const every = all.every((r) => picked.has(r.id));
  return (
    <label className="flex items-center gap-2">
      <input
        type="checkbox"
        checked={every}
        onChange={() => onPick(new Set(every ? [] : all.map((r) => r.id)))}
        className="size-4 accent-(--color-accent)"
        aria-label="Select all that are shown"
      />
      Install
    </label>
  );
}
