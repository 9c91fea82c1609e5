// The review of a change: what it does, the worst first, why, and the decision on it.
import { Problem } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Answer as Got, reading } from "~/api/client";
import { objectsOf } from "~/diff/flatten";
import { PlanView } from "~/diff/PlanView";
import { AtSide } from "~/frame/AtSide";
import { Answer, Skeleton, Trouble } from "~/ui/Answer";
import { Id } from "~/ui/Copy";
import { Failure } from "~/ui/Failure";
import { Name } from "~/ui/Name";
import { Glyph, State, wordOf } from "~/ui/State";
import { Visible } from "~/ui/Visible";
import { Banner } from "./Banner";
import { ChangeSide } from "./ChangeSide";
import { Decide } from "./Decide";
import { Decisions } from "./Decisions";
import { remember } from "./joint";
import { decidable } from "./standing";
import { Tally } from "./Tally";
import { written } from "~/diff/visible";

export type Change = Got<"/changes/{change}">;

export function Change() {
  const { change: id } = useParams({ from: "/inside/changes/$change" });
  const change = useQuery(reading("/changes/{change}", { path: { change: id } }));
  return (
    <>
      {!change.data && <title>Change · Berth</title>}
      <Answer of={change} lines={8}>
        {(found) => <Review key={id} change={found} />}
      </Answer>
    </>
  );
}

function Review({ change }: { change: Change }) {
  const search = useSearch({ from: "/inside/changes/$change" });
  const navigate = useNavigate();
  // A plan is large and never changes a little: it is not compared with what was read before.
  const tree = useQuery({ ...reading("/changes/{change}/plan/tree", { path: { change: change.id } }), structuralSharing: false });
  const objects = useMemo(() => (tree.data ? objectsOf(tree.data.roots, tree.data.outputs) : []), [tree.data]);
  const total = objects.filter((o) => o.risk !== "unchanged").length;

  // What a decision names is what was on the screen when reading began, until the reader
  // asks for the newer plan.
  const [shown, setShown] = useState(change.effect_digest);
  if (shown === undefined && change.effect_digest !== undefined) setShown(change.effect_digest);
  const standing = decidable(change, shown);

  const seen = useRef(new Set<string>());
  const [looked, setLooked] = useState(0);
  const onSeen = useCallback((keys: string[]) => {
    keys.forEach((key) => seen.current.add(key));
    // Unchanged when all were seen before.
    setLooked(seen.current.size);
  }, []);
  const whole = tree.data !== undefined && !tree.data.not_shown_bytes && looked >= total;
  useEffect(() => {
    if (whole && shown) remember(change.id, shown);
  }, [whole, shown, change.id]);
  const take = () => {
    seen.current.clear();
    setLooked(0);
    setShown(change.effect_digest);
  };
  const set = (next: { view?: string; at?: string }) =>
    void navigate({
      to: ".",
      search: (now: Record<string, unknown>) => ({ ...now, ...next }),
      replace: true,
      resetScroll: false,
    });

  const name = change.resource?.name ?? wordOf(change.kind);
  const title = `${change.install.name} · ${name}`;
  return (
    <>
      <title>{written(`${title} · Berth`)}</title>
      <header className="flex flex-wrap items-center gap-x-4 gap-y-1 pb-3">
        <h1 className="flex min-w-0 items-baseline gap-1.5 text-xl font-semibold">
          <Link to="/installs/$install" params={{ install: change.install.name }} className="min-w-0 hover:underline">
            <Name>{change.install.name}</Name>
          </Link>
          <span className="text-dim">·</span>
          <Name>{name}</Name>
        </h1>
        <State state={change.state} word={change.state === "proposed" ? "waits for a decision" : wordOf(change.state)} />
        <Tally change={change} />
        {change.effect_digest && (
          <span className="inline-flex items-center gap-1 text-xs text-dim lg:ml-auto">
            effect <Id>{change.effect_digest}</Id>
          </span>
        )}
        <AtSide is="change" id={change.id} />
      </header>

      {change.error && <Failed change={change} />}
      {!change.error && !standing.can && !standing.moved && <Decisions change={change} standing={standing} />}
      {change.differs.length > 0 && <Differs change={change} />}

      <div className="grid gap-x-8 lg:grid-cols-[minmax(0,1fr)_320px] xl:grid-cols-[minmax(0,1fr)_360px]">
        <ChangeSide change={change} />
        <section aria-label="What it does" className="min-w-0 lg:col-start-1 lg:row-start-1">
          {tree.data ? (
            <>
              {tree.data.not_shown_bytes ? (
                <Banner tone="warn">
                  <span>
                    The plan is too large to be shown whole: {tree.data.not_shown_bytes.toLocaleString("en")} bytes are left out here. The
                    runner keeps them, and the digest of the effect covers them.
                  </span>
                </Banner>
              ) : null}
              {objects.length === 0 ? (
                <p className="py-6 text-dim">
                  {tree.data.no_change ? "Nothing changes." : "The plan names no objects; see the tool’s own text."}
                </p>
              ) : (
                <PlanView
                  key={shown}
                  objects={objects}
                  split={search.view === "split"}
                  onSplit={(split) => set({ view: split ? "split" : undefined })}
                  at={search.at}
                  onAt={(at) => set({ at })}
                  onSeen={onSeen}
                />
              )}
              <OwnText change={change.id} />
            </>
          ) : tree.error ? (
            <NoPlan error={tree.error} change={change} retry={() => void tree.refetch()} />
          ) : (
            <Skeleton lines={10} />
          )}
        </section>
      </div>
      <Decide
        change={change}
        shown={shown}
        standing={standing}
        looked={Math.min(looked, total)}
        total={total}
        ready={tree.data !== undefined}
        onTake={take}
      />
    </>
  );
}

function Failed({ change }: { change: Change }) {
  return (
    <Banner tone="bad">
      <div className="min-w-0 flex-1">
        <Failure text={change.error ?? ""} />
        {change.remedy && (
          <p className="min-w-0 break-words text-dim">
            <Visible>{change.remedy}</Visible>
          </p>
        )}
      </div>
      <Link
        to="/workflows/$workflow"
        params={{ workflow: change.workflow_id }}
        search={{ step: change.step_id, log: "newest" }}
        className="font-medium text-link hover:underline"
      >
        See the log where it failed
      </Link>
    </Banner>
  );
}

function Differs({ change }: { change: Change }) {
  return (
    <Banner tone="warn">
      <div className="min-w-0 flex-1 basis-3/4">
        <p className="font-medium">What differs from what was approved</p>
        <ul>
          {change.differs.map((d) => (
            <li key={d.field} className="font-mono text-xs break-all">
              <Visible>{d.field}</Visible>: <Visible>{d.want || "none"}</Visible> → <Visible>{d.got || "none"}</Visible>
            </li>
          ))}
        </ul>
      </div>
    </Banner>
  );
}

function NoPlan({ error, change, retry }: { error: unknown; change: Change; retry: () => void }) {
  if (!(error instanceof Problem) || error.status !== 404) return <Trouble error={error} retry={retry} />;
  return (
    <p className="flex items-center gap-2 py-6 text-dim">
      <Glyph tone={change.state === "preparing" ? "busy" : "unknown"} />
      {change.state === "preparing" ? "The runner makes the plan; it appears here." : "There is no plan to show."}
      {change.wait && <span>{change.wait.reason}</span>}
    </p>
  );
}

/** What the tool itself printed; read when somebody opens it. */
function OwnText({ change }: { change: string }) {
  const [open, setOpen] = useState(false);
  const plan = useQuery({ ...reading("/changes/{change}/plan", { path: { change } }), enabled: open });
  return (
    <details className="my-6" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary className="cursor-pointer py-1 font-semibold">The tool’s own text</summary>
      {open && (
        <Answer of={plan}>
          {(found) =>
            found.text ? (
              <pre className="max-h-[60vh] overflow-auto rounded-md bg-raised p-3 font-mono text-xs">
                <Visible>{found.text}</Visible>
              </pre>
            ) : (
              <p className="py-2 text-dim">It printed none.</p>
            )
          }
        </Answer>
      )}
    </details>
  );
}
