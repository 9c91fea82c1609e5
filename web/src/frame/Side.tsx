// What stays at the side while the page changes: a log, or what a change does. The URL has it.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, type PointerEvent, type ReactNode, Suspense, useEffect, useState } from "react";
import { reading } from "~/api/client";
import { Answer } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Theirs } from "~/ui/Theirs";
import { useShortcuts } from "./shortcuts";
import { type Kept, widthOf } from "./kept";
import { late } from "~/late";

const LogView = late(() => import("~/logs/LogView"));
const ChangeBrief = late(() => import("~/pages/flow/ChangeBrief"));

const stored = "berth.side";
const step = 32; // px that a key moves the edge

export default function Side({ kept, onClose }: { kept: Kept; onClose: () => void }) {
  useShortcuts({ Escape: onClose });
  const { width, edge } = useWidth();
  return (
    <aside
      aria-label={kept.is === "log" ? "Log at the side" : "Change at the side"}
      style={{ "--side": `${width}px` } as React.CSSProperties}
      className="fixed inset-0 z-20 flex flex-col bg-ground sm:inset-y-0 sm:right-0 sm:left-auto sm:w-(--side) sm:border-l sm:border-line sm:shadow-xl lg:sticky lg:top-0 lg:z-[11] lg:h-dvh lg:shrink-0 lg:shadow-none"
    >
      <div
        role="separator"
        aria-orientation="vertical"
        aria-label="Width of the side"
        aria-valuenow={width}
        aria-valuemin={widthOf(1, innerWidth)}
        aria-valuemax={widthOf(innerWidth, innerWidth)}
        tabIndex={0}
        {...edge}
        className="absolute inset-y-0 -left-1 z-10 hidden w-2 cursor-col-resize touch-none hover:bg-accent/30 focus-visible:bg-accent/30 sm:block"
      />
      {kept.is === "log" ? (
        <Log key={kept.id} stream={kept.id} onClose={onClose} />
      ) : (
        <Change key={kept.id} id={kept.id} onClose={onClose} />
      )}
    </aside>
  );
}

/** How wide it is, and what its edge listens to; this browser remembers it. */
function useWidth() {
  const [wanted, setWanted] = useState(() => Number(localStorage.getItem(stored)) || null);
  const [window_, setWindow] = useState(innerWidth);
  useEffect(() => {
    const resized = () => setWindow(innerWidth);
    addEventListener("resize", resized);
    return () => removeEventListener("resize", resized);
  }, []);
  const width = widthOf(wanted, window_);
  const set = (next: number) => {
    const fits = widthOf(next, innerWidth);
    setWanted(fits);
    localStorage.setItem(stored, String(fits));
  };
  return {
    width,
    edge: {
      onPointerDown: (e: PointerEvent) => e.currentTarget.setPointerCapture(e.pointerId),
      onPointerMove: (e: PointerEvent) => e.currentTarget.hasPointerCapture(e.pointerId) && set(innerWidth - e.clientX),
      onKeyDown: (e: KeyboardEvent) => {
        const by = { ArrowLeft: step, ArrowRight: -step }[e.key];
        if (!by) return;
        e.preventDefault();
        set(width + by);
      },
    },
  };
}

function Head({ children, onClose }: { children: ReactNode; onClose: () => void }) {
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line pr-2 pl-4">
      <h2 className="flex min-w-0 flex-1 items-center gap-2 text-sm font-semibold">{children}</h2>
      <Button look="quiet" onClick={onClose} title="Close (Esc)">
        <span aria-hidden="true">✕</span>
        <span className="sr-only">Close the side</span>
      </Button>
    </header>
  );
}

function Log({ stream, onClose }: { stream: string; onClose: () => void }) {
  const [lines, setLines] = useState<string>();
  const [find, setFind] = useState<string>();
  return (
    <>
      <Head onClose={onClose}>
        <span className="truncate">Log …{stream.slice(-6)}</span>
        <Link
          to="/logs/$stream"
          params={{ stream }}
          search={{ side: undefined, ...(lines && { lines }), ...(find && { find }) }}
          className="font-normal text-link hover:underline"
        >
          On a page of its own
        </Link>
      </Head>
      <div className="min-h-0 flex-1 pt-2 pl-3">
        <Suspense>
          <LogView
            stream={stream}
            lines={lines}
            onLines={setLines}
            find={find}
            onFind={setFind}
            command={<Command>{`berth logs ${stream}`}</Command>}
          />
        </Suspense>
      </div>
    </>
  );
}

function Change({ id, onClose }: { id: string; onClose: () => void }) {
  const change = useQuery(reading("/changes/{change}", { path: { change: id } }));
  const name = change.data && `${change.data.install.name} · ${change.data.resource?.name ?? change.data.kind.replaceAll("_", " ")}`;
  return (
    <>
      <Head onClose={onClose}>
        <span className="truncate">{name ? <Theirs>{name}</Theirs> : "Change"}</span>
        <Link
          to="/changes/$change"
          params={{ change: id }}
          search={{ side: undefined }}
          className="shrink-0 font-normal text-link hover:underline"
        >
          Review
        </Link>
      </Head>
      <div className="min-h-0 flex-1 overflow-y-auto px-4 pb-4">
        <Answer of={change} lines={8}>
          {(found) => (
            <Suspense>
              <ChangeBrief change={found} />
            </Suspense>
          )}
        </Answer>
      </div>
    </>
  );
}
