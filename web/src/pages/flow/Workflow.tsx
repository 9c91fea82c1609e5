// A workflow: its steps in time, what holds them up, and the logs next to them.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { type Answer as Got, reading } from "~/api/client";
import { useShortcuts } from "~/frame/shortcuts";
import { Answer } from "~/ui/Answer";
import { Command, Id } from "~/ui/Copy";
import { Name } from "~/ui/Name";
import { Glyph, State, toneOf, wordOf } from "~/ui/State";
import { duration } from "~/ui/time";
import { Time, Took } from "~/ui/Time";
import { bars, criticalPath } from "./path";
import { Notes, Reasons } from "./Notes";
import { StepPanel } from "./StepPanel";
import { WorkflowActions } from "./WorkflowActions";
import { Theirs } from "~/ui/Theirs";
import { written } from "~/diff/visible";

export type Workflow = Got<"/workflows/{workflow}">;
export type Step = NonNullable<Workflow["steps"]>[number];

export interface WorkflowSearch {
  step?: string | undefined;
  log?: string | undefined;
  lines?: string | undefined;
}

export function Workflow() {
  const { workflow: id } = useParams({ from: "/inside/workflows/$workflow" });
  const workflow = useQuery(reading("/workflows/{workflow}", { path: { workflow: id } }));
  return (
    <>
      {!workflow.data && <title>Workflow · Berth</title>}
      <Answer of={workflow} lines={8}>
        {(found) => <Flow key={id} workflow={found} />}
      </Answer>
    </>
  );
}

const ended = new Set(["succeeded", "failed", "cancelled"]);

function Flow({ workflow }: { workflow: Workflow }) {
  const search = useSearch({ from: "/inside/workflows/$workflow" });
  const navigate = useNavigate({ from: "/workflows/$workflow" });
  const set = (next: WorkflowSearch) => void navigate({ search: next, replace: true, resetScroll: false });
  const why = useQuery({
    ...reading("/workflows/{workflow}/why", { path: { workflow: workflow.id } }),
    enabled: workflow.state !== "succeeded",
  });
  const steps = useMemo(() => workflow.steps ?? [], [workflow.steps]);
  const index = steps.findIndex((s) => s.id === search.step);
  const step = steps[index];

  const move = (by: number) => {
    const next = steps[index < 0 ? (by > 0 ? 0 : steps.length - 1) : Math.min(Math.max(index + by, 0), steps.length - 1)];
    if (next) set({ step: next.id });
  };
  const failure = () => {
    const failed = steps.filter((s) => s.state === "failed");
    const next = failed.find((s) => steps.indexOf(s) > index) ?? failed[0];
    if (next) set({ step: next.id, log: "newest" });
  };
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    f: failure,
    l: step && (() => set({ step: step.id, log: search.log ? undefined : "newest" })),
    Escape: step && (() => set({ step: search.log ? step.id : undefined })),
  });

  return (
    <>
      <title>{written(`${workflow.install.name} · ${wordOf(workflow.kind)} ${workflow.number} · Berth`)}</title>
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2 pb-3">
        <h1 className="flex min-w-0 items-baseline gap-1.5 text-xl font-semibold">
          <Link to="/installs/$install" params={{ install: workflow.install.name }} className="min-w-0 hover:underline">
            <Name>{workflow.install.name}</Name>
          </Link>
          <span className="text-dim">·</span>
          <span className="whitespace-nowrap">
            {wordOf(workflow.kind)} {workflow.number}
          </span>
        </h1>
        <State state={workflow.state} />
        {workflow.plan_only && <State state="planned" word="plans only" />}
        <p className="min-w-0 text-dim">
          {workflow.release && <>r{workflow.release.number} · </>}
          by <Theirs>{workflow.created_by}</Theirs> <Time at={workflow.created_at} />
          {workflow.started_at && (
            <>
              {" "}
              · <Took from={workflow.started_at} to={workflow.finished_at} />
            </>
          )}
        </p>
        <WorkflowActions workflow={workflow} />
      </header>
      <Notes workflow={workflow} brief={step !== undefined} />
      {why.data && why.data.items.length > 0 && !ended.has(workflow.state) && <Reasons items={why.data.items} />}
      {steps.length === 0 ? (
        <p className="py-6 text-dim">It has no steps.</p>
      ) : (
        <div className={step ? "grid gap-x-6 lg:grid-cols-[minmax(0,5fr)_minmax(0,7fr)]" : ""}>
          <div className={step ? "max-lg:hidden" : ""}>
            <Steps
              workflow={workflow}
              steps={steps}
              chosen={step}
              narrow={step !== undefined}
              why={why.data?.items ?? []}
              log={search.log !== undefined}
            />
          </div>
          {step && (
            <StepPanel
              key={step.id}
              workflow={workflow}
              step={step}
              steps={steps}
              why={why.data?.items ?? []}
              search={search}
              onSearch={set}
            />
          )}
        </div>
      )}
      <footer className="mt-4 flex flex-wrap items-center gap-3 text-dim">
        <Id>{workflow.id}</Id>
        <Command>{`berth workflows watch ${workflow.id}`}</Command>
        {workflow.trace && <Trace {...workflow.trace} />}
      </footer>
    </>
  );
}

/** Where the trace is seen, or its id to look for in logs. */
function Trace({ id, url }: NonNullable<Workflow["trace"]>) {
  if (!url || !/^https?:\/\//.test(url))
    return (
      <span className="inline-flex items-center gap-1 text-xs">
        trace <Id keep={8}>{id}</Id>
      </span>
    );
  return (
    <a href={url} target="_blank" rel="noopener noreferrer" className="text-xs" title={`Trace ${id}, in another tab`}>
      Trace ↗
    </a>
  );
}

interface StepsProps {
  workflow: Workflow;
  steps: Step[];
  chosen: Step | undefined;
  /** Something stands next to it. */
  narrow: boolean;
  why: Got<"/workflows/{workflow}/why">["items"];
  log: boolean;
}

function Steps({ workflow, steps, chosen, narrow, why, log }: StepsProps) {
  const now = useNow(!ended.has(workflow.state));
  const path = useMemo(() => new Set(criticalPath(steps, now)), [steps, now]);
  const time = bars(steps, now);
  return (
    <section aria-label="Steps">
      <header className="flex h-8 items-center gap-3 border-b border-line text-xs text-dim">
        <span className={narrow ? "flex-1" : "flex-1 sm:w-88 sm:flex-none"}>
          {steps.length} {steps.length === 1 ? "step" : "steps"}
        </span>
        {!narrow && (
          <span className="hidden flex-1 justify-between tabular-nums sm:flex">
            <span>0</span>
            {time.whole > 0 && <span>{duration(time.whole)}</span>}
          </span>
        )}
        <span className="w-20 text-right">took</span>
      </header>
      <ol>
        {steps.map((step) => (
          <li key={step.id}>
            <Row
              step={step}
              bar={time.bars.get(step.name)}
              critical={path.has(step.name)}
              chosen={step === chosen}
              related={chosen && (chosen.needs.includes(step.name) ? "before" : step.needs.includes(chosen.name) ? "after" : undefined)}
              narrow={narrow}
              waits={why.find((w) => w.id === step.id || (step.change !== undefined && w.id === step.change.id))?.reason}
              log={log}
            />
          </li>
        ))}
      </ol>
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2 text-xs text-dim">
        <span className="inline-flex items-center gap-1.5">
          <svg width="16" height="8" aria-hidden="true">
            <rect width="16" height="8" rx="2" className="fill-accent" />
          </svg>
          critical path: what the whole waits for
        </span>
        {chosen && <span>▴ needed by it · ▾ needs it</span>}
      </p>
    </section>
  );
}

interface RowProps {
  step: Step;
  bar: { from: number; width: number } | undefined;
  critical: boolean;
  chosen: boolean;
  related: "before" | "after" | undefined;
  narrow: boolean;
  /** What it waits for, for people. */
  waits: string | undefined;
  /** Logs are open: those of the step are shown at once. */
  log: boolean;
}

function Row({ step, bar, critical, chosen, related, narrow, waits, log }: RowProps) {
  const change = step.change;
  const asks = change?.state === "proposed";
  return (
    <div
      data-chosen={chosen || undefined}
      className="relative flex min-h-11 items-center gap-3 border-b border-line hover:bg-hover data-chosen:bg-chosen"
    >
      <div className={`flex min-w-0 flex-1 items-center gap-2 ${narrow ? "" : "sm:w-88 sm:flex-none"}`}>
        <Link
          from="/workflows/$workflow"
          search={{ step: step.id, ...(log ? { log: "newest" } : {}) }}
          replace
          resetScroll={false}
          aria-current={chosen ? "step" : undefined}
          className="flex min-h-10 min-w-0 flex-1 items-center gap-2 after:absolute after:inset-0"
        >
          <span
            className="w-3 shrink-0 text-center text-dim"
            title={related === "before" ? "the chosen step needs it" : related ? "it needs the chosen step" : undefined}
          >
            {related === "before" ? "▴" : related === "after" ? "▾" : ""}
          </span>
          <Glyph tone={asks ? "ask" : toneOf(step.state)} />
          <span className="min-w-0">
            <span className="flex min-w-0">
              <Name>{step.name}</Name>
            </span>
            <span className={`block truncate text-xs ${step.state === "failed" ? "text-bad" : "text-dim"}`}>{line(step, waits)}</span>
          </span>
        </Link>
        {asks && (
          <Link
            to="/changes/$change"
            params={{ change: change.id }}
            className="relative z-[1] shrink-0 px-1 font-medium text-link hover:underline"
          >
            Review
          </Link>
        )}
      </div>
      <svg
        className={
          narrow ? "absolute inset-x-0 bottom-0 h-0.5" : "h-10 min-w-0 flex-1 max-sm:absolute max-sm:inset-x-0 max-sm:bottom-0 max-sm:h-0.5"
        }
        width="100%"
        aria-hidden="true"
      >
        {bar && (
          <rect
            x={`${bar.from * 100}%`}
            y={narrow ? "0" : "35%"}
            width={`${Math.max(bar.width * 100, 0.4)}%`}
            height={narrow ? "100%" : "30%"}
            rx="2"
            className={step.state === "failed" ? "fill-bad" : critical ? "fill-accent" : "fill-line-strong"}
            opacity={step.state === "waiting" ? 0.55 : 1}
          />
        )}
      </svg>
      <span className="w-20 shrink-0 text-right text-xs text-dim tabular-nums">
        {critical && <span className="sr-only">on the critical path </span>}
        {step.started_at && <Took from={step.started_at} to={step.finished_at} />}
      </span>
    </div>
  );
}

/** How a step stands, in one line. */
function line(step: Step, waits: string | undefined): string {
  if (step.state === "failed")
    return step.ended === "denied" ? `denied${step.ended_by ? ` by ${step.ended_by}` : ""}` : (step.error ?? "failed");
  if (step.wait) return waits ?? step.wait.reason;
  if (step.progress) {
    const { what, doing, done, total } = step.progress;
    return `${doing} ${what}${total ? `, ${done} of ${total}` : ""}`;
  }
  return step.state === "pending" && step.needs.length > 0
    ? `waits for ${step.needs.join(", ")}`
    : wordOf(step.change?.state === "no_change" ? "no_change" : step.state);
}

/** The time, each second while something runs. */
function useNow(runs: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!runs) return;
    const every = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(every);
  }, [runs]);
  return now;
}
