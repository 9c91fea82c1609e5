// Joins the stream of events to the cache: what an event makes old is read again.
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import type { Key } from "~/api/client";
import { affects, type OrgEvent } from "./affects";
import { Pace } from "./pace";
import { follow, type Standing } from "./stream";

const Context = createContext<Standing>({ is: "connecting" });

type Listener = (events: readonly OrgEvent[]) => void;
const listeners = new Set<Listener>();

/** Tells of events as they come: for what keeps itself fresh piece by piece. */
export function useEvents(listener: Listener): void {
  const current = useRef(listener);
  useEffect(() => {
    current.current = listener;
  });
  useEffect(() => {
    const tell: Listener = (events) => current.current(events);
    listeners.add(tell);
    return () => void listeners.delete(tell);
  }, []);
}

/** How the stream stands. */
export const useStanding = () => useContext(Context);

export function Live({ children, onLoggedOut }: { children: ReactNode; onLoggedOut: () => void }) {
  const cache = useQueryClient();
  const [standing, setStanding] = useState<Standing>({ is: "connecting" });
  useEffect(() => {
    const end = new AbortController();
    let waiting: OrgEvent[] = [];
    const refresh = new Pace(() => {
      const events = waiting;
      waiting = [];
      void cache.invalidateQueries({ predicate: ({ queryKey }) => events.some((e) => affects(e, queryKey as unknown as Key)) });
    });
    let cut = false;
    follow(
      {
        events: (events) => {
          listeners.forEach((tell) => tell(events));
          waiting.push(...events);
          refresh.ask();
        },
        lost: () => void cache.invalidateQueries(),
        standing: (next) => {
          setStanding(next);
          if (next.is === "logged_out") onLoggedOut();
          // What was asked while the stream was cut may have failed for the same reason.
          if (next.is === "live" && cut) void cache.invalidateQueries({ predicate: (q) => q.state.status === "error" });
          cut = next.is === "stale";
        },
      },
      end.signal,
    );
    return () => {
      end.abort();
      refresh.stop();
    };
  }, [cache, onLoggedOut]);
  return <Context value={standing}>{children}</Context>;
}
