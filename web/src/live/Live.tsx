// Joins the stream of events to the cache: what an event makes old is read again.
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import type { OrgEvent } from "./affects";
import { Pace } from "./pace";
import { Refresh } from "./refresh";
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
    const refresh = new Refresh(cache);
    const pace = new Pace(() => {
      const events = waiting;
      waiting = [];
      refresh.events(events);
    });
    let cut = false;
    follow(
      {
        events: (events) => {
          listeners.forEach((tell) => tell(events));
          waiting.push(...events);
          pace.ask();
        },
        lost: () => refresh.all(),
        standing: (next) => {
          setStanding(next);
          if (next.is === "logged_out") onLoggedOut();
          if (next.is === "live" && cut) refresh.back();
          cut = next.is === "stale";
        },
      },
      end.signal,
    );
    return () => {
      end.abort();
      pace.stop();
      refresh.end();
    };
  }, [cache, onLoggedOut]);
  return <Context value={standing}>{children}</Context>;
}
