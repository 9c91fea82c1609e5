// One step: how it stands, who can end its wait, what it did, and its log.
import { AtSide } from "~/frame/AtSide";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { berth, type Answer as Got, reading } from "~/api/client";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { counts } from "~/ui/counts";
import { Fact } from "~/ui/Facts";
import { Failure } from "~/ui/Failure";
import { Name } from "~/ui/Name";
import { State, toneOf, wordOf } from "~/ui/State";
import { Time, Took } from "~/ui/Time";
import { Visible } from "~/ui/Visible";
import { neededBy } from "./path";
import type { Step, Workflow, WorkflowSearch } from "./Workflow";
import { type Act, useWhyNot } from "./WorkflowActions";
import { late } from "~/late";

const ConfirmAct = late(() => import("./ConfirmAct"));
const LogView = late(() => import("~/logs/LogView"));

interface StepPanelProps {
  workflow: Workflow;
  step: Step;
  steps: Step[];
  why: Got<"/workflows/{workflow}/why">["items"];
  search: WorkflowSearch;
  onSearch: (search: WorkflowSearch) => void;
}

export function StepPanel({ workflow, step, steps, why, search, onSearch }: StepPanelProps) {
  const whole = useQuery(reading("/steps/{step}", { path: { step: step.id } }));
  const not = useWhyNot(workflow.install.name);
  const [act, setAct] = useState<Act>();
  const jobs = whole.data?.jobs ?? [];
  const streams = jobs.flatMap((job) => job.stream_ids.map((id, i) => ({ id, job, attempt: i + 1 }))).reverse();
  const shown = search.log === "newest" ? streams[0]?.id : search.log;
  const reasons = why.filter((w) => w.id === step.id || (step.change !== undefined && w.id === step.change.id));
  const path = { params: { path: { step: step.id } } };
  const retries = step.state === "failed" || step.state === "cancelled";
  const byName = new Map(steps.map((s) => [s.name, s]));
  const links = (names: readonly string[]) =>
    names.map((name, i) => {
      const other = byName.get(name);
      return (
        <span key={name}>
          {i > 0 && ", "}
          {other ? (
            <button type="button" className="text-link hover:underline" onClick={() => onSearch({ step: other.id })}>
              {name}
            </button>
          ) : (
            name
          )}
        </span>
      );
    });
  const after = neededBy(steps, step.name);
  return (
    <section
      aria-label={`Step ${step.name}`}
      className={`flex min-w-0 flex-col lg:sticky lg:top-14 lg:self-start lg:border-l lg:border-line lg:pl-6 ${search.log ? "h-[calc(100dvh-11rem)] sm:h-[calc(100dvh-9.5rem)]" : "lg:max-h-[calc(100dvh-5rem)] lg:overflow-auto"}`}
    >
      <header className="flex min-h-8 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line pb-1.5">
        <Button look="quiet" className="px-1.5! lg:hidden" onClick={() => onSearch({})}>
          ← All steps
        </Button>
        <h2 className="min-w-0 text-md font-semibold">
          <Name>{step.name}</Name>
        </h2>
        <State state={step.state} />
        {step.started_at && (
          <span className="text-dim">
            <Took from={step.started_at} to={step.finished_at} />
          </span>
        )}
        <span className="ml-auto flex gap-1">
          {streams.length > 0 && (
            <Button
              look="quiet"
              aria-pressed={search.log !== undefined}
              className="aria-pressed:bg-chosen"
              onClick={() => onSearch({ step: step.id, log: search.log ? undefined : "newest" })}
            >
              Logs <kbd className="font-mono text-xs text-dim">l</kbd>
            </Button>
          )}
          <Button look="quiet" className="max-lg:hidden" aria-label="Close the step" title="Close (Esc)" onClick={() => onSearch({})}>
            ✕
          </Button>
        </span>
      </header>
      <div className={search.log ? "max-h-[40%] shrink-0 overflow-auto" : ""}>
        {(step.error || step.remedy) && (
          <div className="my-2 border-l-2 border-bad pl-3">
            {step.error && <Failure text={step.error} />}
            {step.remedy && (
              <p className="break-words text-dim">
                <Visible>{step.remedy}</Visible>
              </p>
            )}
          </div>
        )}
        {(retries || step.change) && (
          <div className="flex flex-wrap items-center gap-2 py-2">
            {step.change && (
              <Link
                to="/changes/$change"
                params={{ change: step.change.id }}
                className={`inline-flex h-8 items-center rounded-md border px-3 font-medium ${step.change.state === "proposed" ? "border-transparent bg-accent text-on-accent hover:bg-accent-hover" : "border-line-strong hover:bg-hover"}`}
              >
                {step.change.state === "proposed" ? "Review change" : "Open change"}
              </Link>
            )}
            {retries && (
              <>
                <Button
                  refused={not("workflows:write")}
                  onClick={() =>
                    setAct({
                      title: "Retry step",
                      text: "Plans the step again. An approval still counts if the effect is the same.",
                      verb: "Retry step",
                      command: `berth retry ${step.id}`,
                      run: () => berth.POST("/steps/{step}/retry", path),
                    })
                  }
                >
                  Retry step
                </Button>
                {step.state === "failed" && (
                  <Button
                    refused={not("workflows:write")}
                    onClick={() =>
                      setAct({
                        title: "Skip step",
                        text: `Goes on without ${step.name}${after.length ? `, and without what needs it: ${after.join(", ")}` : ""}. Something of the release is missing then.`,
                        verb: "Skip step",
                        command: `berth skip ${step.id}`,
                        danger: true,
                        run: () => berth.POST("/steps/{step}/skip", path),
                      })
                    }
                  >
                    Skip step
                  </Button>
                )}
              </>
            )}
          </div>
        )}
        <dl className={`grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 py-2 ${search.log ? "max-lg:hidden" : ""}`}>
          {step.wait && (
            <Fact name="Waits">
              {step.wait.reason}
              <span className="block text-dim">
                {step.wait.on} can end it · ends by itself <Time at={step.wait.deadline} />
                {step.wait.retry_at && (
                  <>
                    {" "}
                    · looks again <Time at={step.wait.retry_at} />
                  </>
                )}
              </span>
            </Fact>
          )}
          {reasons.map((r, i) => (
            <Fact key={i} name={i === 0 ? "Unblock" : ""}>
              {r.unblock ? <Command>{r.unblock}</Command> : r.reason}
            </Fact>
          ))}
          {step.progress && (
            <Fact name="Does">
              {step.progress.doing} <Visible>{step.progress.what}</Visible>
              <span className="text-dim">
                {" "}
                for <Took from={step.progress.started_at} />
                {step.progress.total > 0 && ` · ${step.progress.done} of ${step.progress.total}`}
              </span>
            </Fact>
          )}
          <Fact name="Because">{step.reason}</Fact>
          {step.change && (
            <Fact name="Change">
              <State state={step.change.state} tone={toneOf(step.change.state)} />{" "}
              <span className="text-dim">
                {[counts(step.change.counts), step.change.rollback_class && `going back: ${wordOf(step.change.rollback_class)}`]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
            </Fact>
          )}
          {step.needs.length > 0 && <Fact name="Needs">{links(step.needs)}</Fact>}
          {after.length > 0 && <Fact name="Needed by">{links(after)}</Fact>}
          {step.may_change && step.may_change.length > 0 && (
            <Fact name="May change">
              {step.may_change.map((m) => `${m.reads} of ${m.of}${m.absent ? " (not there yet)" : ""}`).join(", ")}
            </Fact>
          )}
        </dl>
        {jobs.length > 0 && (
          <table className={`w-full ${search.log ? "max-lg:hidden" : ""}`}>
            <caption className="sr-only">What the runner was given for this step</caption>
            <tbody>
              {jobs.map((job) => (
                <tr key={job.id} className="border-t border-line">
                  <td className="h-8 pr-3">{job.operation}</td>
                  <td className="pr-3">
                    <State state={job.state} />
                  </td>
                  <td className="pr-3 text-dim">
                    {job.started_at ? <Took from={job.started_at} to={job.finished_at} /> : <Time at={job.queued_at} />}
                  </td>
                  <td className="text-right">
                    {job.stream_ids.map((id, i) => (
                      <button
                        key={id}
                        type="button"
                        aria-pressed={id === shown}
                        className="ml-2 text-link hover:underline aria-pressed:font-semibold"
                        onClick={() => onSearch({ step: step.id, log: id })}
                      >
                        {job.stream_ids.length > 1 ? `log ${i + 1}` : "log"}
                      </button>
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {whole.data && jobs.length === 0 && (
          <p className="border-t border-line py-2 text-dim">No runner was given anything for this step, so it has no log.</p>
        )}
      </div>
      {search.log && shown && (
        <div className="min-h-0 flex-1 border-t border-line">
          <Suspense>
            <LogView
              stream={shown}
              atError={step.state === "failed"}
              lines={search.lines}
              onLines={(lines) => onSearch({ step: step.id, log: shown, lines })}
              command={
                <span className="flex gap-3">
                  <AtSide is="log" id={shown} />
                  <Link
                    to="/logs/$stream"
                    params={{ stream: shown }}
                    search={search.lines ? { lines: search.lines } : {}}
                    className="text-link hover:underline"
                  >
                    On a page of its own
                  </Link>
                </span>
              }
            />
          </Suspense>
        </div>
      )}
      <Suspense>{act && <ConfirmAct {...act} onClose={() => setAct(undefined)} />}</Suspense>
    </section>
  );
}
