// The same thing done in many installs: first what would happen, then that and nothing else.
import { ok } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Answer as Got, berth, reading } from "~/api/client";
import { Answer, Trouble } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Dialog } from "~/ui/Dialog";
import { Name } from "~/ui/Name";
import { State, type Tone } from "~/ui/State";
import { bulkCommand, type Operation } from "~/command";

type Bulk = Got<"/bulk/{bulk}">;

const verbs: Record<Operation, string> = { deploy: "Deploy newest release to", pause: "Pause", resume: "Resume" };
const installsOf = (n: number) => `${n} ${n === 1 ? "install" : "installs"}`;

export default function BulkDialog({
  operation,
  installs,
  onClose,
}: {
  operation: Operation;
  installs: readonly string[];
  onClose: () => void;
}) {
  const [reason, setReason] = useState("");
  const [done, setDone] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const body = {
    operation,
    filter: { installs: [...installs] },
    ...(operation === "pause" ? { reason: reason.trim() || "(preview)" } : {}),
  };
  const preview = useQuery({
    queryKey: ["bulk preview", operation, installs],
    queryFn: ({ signal }) => ok(berth.POST("/bulk", { params: { query: { dry_run: true } }, body, signal })),
    staleTime: 0,
    gcTime: 0,
  });
  const start = async () => {
    setBusy(true);
    setError(undefined);
    try {
      // The reason of a pause is part of the version: it is asked for again with the one that counts.
      const agreed = operation === "pause" ? await ok(berth.POST("/bulk", { params: { query: { dry_run: true } }, body })) : preview.data;
      const made = await ok(berth.POST("/bulk", { params: { header: { "If-Match": agreed!.version } }, body }));
      setDone(made.id);
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  const title = `${verbs[operation]} ${installsOf(installs.length)}`;
  return (
    <Dialog title={title} onClose={onClose} wide>
      <div className="flex min-h-0 flex-col gap-3 overflow-auto p-4">
        {done ? (
          <Outcome id={done} />
        ) : (
          <>
            {operation === "pause" && (
              <label className="flex flex-col gap-1">
                <span>Why? Those who wait will read it.</span>
                <input
                  value={reason}
                  maxLength={500}
                  onChange={(e) => setReason(e.target.value)}
                  className="h-9 rounded-md border border-line-strong bg-ground px-2"
                />
              </label>
            )}
            <Answer of={preview}>
              {(bulk) => (
                <>
                  <Items bulk={bulk} />
                  <LeftOut names={leftOut(installs, bulk)} />
                </>
              )}
            </Answer>
          </>
        )}
        {error !== undefined && <Trouble error={error} />}
      </div>
      <footer className="flex flex-wrap items-center gap-2 border-t border-line p-4">
        {done ? (
          <Button look="main" onClick={onClose}>
            Close
          </Button>
        ) : (
          <>
            <Button
              look="main"
              disabled={busy}
              refused={
                !preview.data
                  ? "the preview is not there yet"
                  : preview.data.counts.started === 0
                    ? "nothing would be done"
                    : operation === "pause" && !reason.trim()
                      ? "say why first"
                      : undefined
              }
              onClick={() => void start()}
            >
              {preview.data ? `${verbs[operation]} ${installsOf(preview.data.counts.started)}` : title}
            </Button>
            <Button onClick={onClose}>Cancel</Button>
          </>
        )}
        <span className="min-w-0 flex-1">
          <Command>{bulkCommand(operation, installs, reason.trim())}</Command>
        </span>
      </footer>
    </Dialog>
  );
}

/** Selected installs that it does not reach. */
const leftOut = (installs: readonly string[], bulk: Bulk): string[] =>
  installs.filter((name) => !bulk.items?.some((item) => item.install.name === name));

function LeftOut({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <p className="text-warn">
      Left out, since they are not live or not yours to change: <bdi>{names.join(", ")}</bdi>
    </p>
  );
}

/** What became of it, live. */
function Outcome({ id }: { id: string }) {
  const bulk = useQuery({
    ...reading("/bulk/{bulk}", { path: { bulk: id } }),
    // What is refused when its turn comes has no event.
    refetchInterval: ({ state }) => state.data?.items?.some((item) => item.outcome === "pending") && 2_000,
  });
  return <Answer of={bulk}>{(b) => <Items bulk={b} />}</Answer>;
}

const outcomes: Record<string, { tone: Tone; word: string }> = {
  pending: { tone: "wait", word: "waits for its turn" },
  would_start: { tone: "planned", word: "would start" },
  started: { tone: "busy", word: "started" },
  done: { tone: "good", word: "done" },
  refused: { tone: "bad", word: "refused" },
};

function Items({ bulk }: { bulk: Bulk }) {
  return (
    <ul aria-label="Installs">
      {(bulk.items ?? []).map((item) => {
        const { tone, word } = outcomes[item.outcome] ?? { tone: "unknown", word: item.outcome };
        return (
          <li key={item.install.id} className="flex min-h-9 flex-wrap items-center gap-x-3 border-b border-line py-1">
            <span className="min-w-0 font-medium sm:w-56">
              <Link to="/installs/$install" params={{ install: item.install.name }} className="hover:underline">
                <Name>{item.install.name}</Name>
              </Link>
            </span>
            {item.workflow_id ? (
              <Link to="/workflows/$workflow" params={{ workflow: item.workflow_id }} className="text-link underline">
                <State state={item.workflow_state ?? "running"} />
              </Link>
            ) : (
              <State state={item.outcome} tone={tone} word={word} />
            )}
            <span className="min-w-0 flex-1 text-dim">{[item.detail, item.remedy].filter(Boolean).join(" · ")}</span>
          </li>
        );
      })}
    </ul>
  );
}
