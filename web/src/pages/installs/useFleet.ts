// Reads the whole fleet once, and then only the installs that events are about.
import { ok } from "@berth/client";
import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { berth } from "~/api/client";
import type { OrgEvent } from "~/live/affects";
import { useEvents } from "~/live/Live";
import { Pace } from "~/live/pace";
import { type Cell, type InstallStatus, type Row, rowOf } from "./rows";

type Statuses = ReadonlyMap<string, InstallStatus>;
/** The resources of each install, by name. */
type Cells = ReadonlyMap<string, ReadonlyMap<string, Cell>>;

// Keys that no event makes old: what is read here is kept fresh below.
const fleetKey = ["fleet"] as const;
const statusKey = [...fleetKey, "status"] as const;
const cellsKey = [...fleetKey, "cells"] as const;

/** From so many installs on, the list is read again instead of each. */
const many = 25;
/** Components are read in the longest pages that the API gives: thousands are there in a few. */
const longest = 5000;

export interface Fleet {
  rows: Row[] | undefined;
  cells: Cells;
  /** Components are still being read. */
  filling: boolean;
  error: unknown;
  refetch: () => void;
}

export function useFleet(): Fleet {
  const cache = useQueryClient();
  const status = useQuery({ queryKey: statusKey, queryFn: ({ signal }) => readStatuses(signal), staleTime: Infinity });
  const cells = useQuery({ queryKey: cellsKey, queryFn: ({ signal }) => readCells(cache, signal), staleTime: Infinity });
  const waiting = useRef(new Set<string>());
  const pace = useRef<Pace>(undefined);
  useEffect(() => {
    let reads = false; // one at a time: an older answer never covers a newer one
    const made = new Pace(() => {
      if (reads || cache.isFetching({ queryKey: fleetKey }) > 0) return; // its answer may be of before the events: these wait for it
      const ids = [...waiting.current];
      waiting.current.clear();
      reads = true;
      void readAgain(cache, ids).finally(() => {
        reads = false;
        if (waiting.current.size > 0) made.ask();
      });
    });
    pace.current = made;
    return () => made.stop();
  }, [cache]);
  const reading = status.isFetching || cells.isFetching;
  useEffect(() => {
    if (!reading && waiting.current.size > 0) pace.current?.ask();
  }, [reading]);
  useEvents((events) => {
    for (const id of events.flatMap(concerns)) waiting.current.add(id);
    if (waiting.current.size > 0) pace.current?.ask();
  });
  const rows = useMemo(() => status.data && [...status.data.values()].map(rowOf), [status.data]);
  return {
    rows,
    cells: cells.data ?? none,
    filling: cells.isFetching,
    error: status.error ?? cells.error,
    refetch: () => void cache.invalidateQueries({ queryKey: fleetKey }),
  };
}

const none: Cells = new Map();
/** A release makes all installs of its app another number behind. */
const all = "*";

function concerns(event: OrgEvent): string[] {
  if (event.kind.startsWith("release.")) return [all];
  return event.install_id ? [event.install_id] : [];
}

async function readStatuses(signal: AbortSignal): Promise<Statuses> {
  const found = new Map<string, InstallStatus>();
  for await (const status of berth.list("/status", { signal })) found.set(status.install.id, status);
  return found;
}

/** Reads page by page, and shows what is there meanwhile. */
async function readCells(cache: QueryClient, signal: AbortSignal): Promise<Cells> {
  const found = new Map<string, Map<string, Cell>>();
  const first = cache.getQueryData(cellsKey) === undefined;
  let count = 0;
  for await (const cell of berth.list("/resources", { query: { limit: longest }, signal })) {
    put(found, cell);
    if (first && ++count % longest === 0) cache.setQueryData(cellsKey, new Map(found));
  }
  return found;
}

function put(into: Map<string, Map<string, Cell>>, cell: Cell): void {
  if (cell.kind === "stack") return;
  const of = into.get(cell.install.id);
  if (of) of.set(cell.name, cell);
  else into.set(cell.install.id, new Map([[cell.name, cell]]));
}

async function readAgain(cache: QueryClient, ids: string[]): Promise<void> {
  const installs = ids.filter((id) => id !== all);
  if (ids.length > many || installs.length < ids.length) {
    await cache.invalidateQueries({ queryKey: statusKey });
  } else {
    try {
      const fresh = await Promise.all(
        installs.map((install) => ok(berth.GET("/installs/{install}/status", { params: { path: { install } } }))),
      );
      cache.setQueryData<Statuses>(statusKey, (old) => old && new Map([...old, ...fresh.map((s) => [s.install.id, s] as const)]));
    } catch {
      await cache.invalidateQueries({ queryKey: statusKey }); // one is gone
    }
  }
  if (ids.length > many) {
    await cache.invalidateQueries({ queryKey: cellsKey });
    return;
  }
  const found = new Map<string, Map<string, Cell>>();
  await Promise.all(
    installs.map(async (id) => {
      try {
        for await (const cell of berth.list("/resources", { query: { install: id } })) put(found, cell);
      } catch {
        // Gone, or not to be read any more: what is shown stays until the list is read again.
      }
    }),
  );
  cache.setQueryData<Cells>(cellsKey, (old) => old && new Map([...old, ...found]));
}
