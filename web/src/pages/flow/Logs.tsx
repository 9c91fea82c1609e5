import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { AtSide } from "~/frame/AtSide";
import LogView from "~/logs/LogView";
import { Command } from "~/ui/Copy";

/** A log on a page of its own. */
export function Logs() {
  const { stream } = useParams({ from: "/inside/logs/$stream" });
  const { lines, find } = useSearch({ from: "/inside/logs/$stream" });
  const navigate = useNavigate({ from: "/logs/$stream" });
  const set = (next: { lines?: string | undefined; find?: string | undefined }) =>
    void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false });
  return (
    <div className="h-[calc(100dvh-48px-2.5rem-56px)] sm:h-[calc(100dvh-48px-2.5rem)]">
      <title>{`Log ${stream.slice(-6)} · Berth`}</title>
      <h1 className="sr-only">Log {stream}</h1>
      <LogView
        stream={stream}
        lines={lines}
        onLines={(next) => set({ lines: next })}
        find={find}
        onFind={(next) => set({ find: next })}
        command={
          <>
            <AtSide is="log" id={stream} />
            <Command>{`berth logs ${stream}`}</Command>
          </>
        }
      />
    </div>
  );
}
