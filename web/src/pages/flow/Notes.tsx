// What is said of a workflow above its steps: why it failed or waits, how it ended, what is offered.
import { Link } from "@tanstack/react-router";
import type { Answer as Got } from "~/api/client";
import { Command } from "~/ui/Copy";
import { Failure } from "~/ui/Failure";
import { Glyph, type Tone } from "~/ui/State";
import { Theirs } from "~/ui/Theirs";
import { Time } from "~/ui/Time";
import { Banner } from "./Banner";
import type { Workflow } from "./Workflow";

/** Why it failed, with the way to the line of the log. */
function Failed({ workflow }: { workflow: Workflow }) {
  const failed = (workflow.steps ?? []).filter((s) => s.state === "failed" && s.error);
  return (
    <Banner tone="bad">
      <div className="min-w-0 flex-1">
        {failed.length === 0 && <Failure text={workflow.error ?? ""} />}
        {failed.map((step) => (
          <div key={step.id} className="flex flex-wrap items-start gap-x-4 gap-y-1">
            <div className="min-w-0 flex-1">
              <Failure text={`${step.name}: ${step.error}`} />
            </div>
            {(step.change ?? workflow.plan_only) && (
              <Link
                from="/workflows/$workflow"
                search={{ step: step.id, log: "newest" }}
                replace
                resetScroll={false}
                className="font-medium text-link hover:underline"
              >
                See the log where it failed <kbd className="font-mono text-xs text-dim">f</kbd>
              </Link>
            )}
          </div>
        ))}
      </div>
    </Banner>
  );
}

/** What holds it, how it ended, what is offered. */
export function Notes({ workflow, brief }: { workflow: Workflow; brief: boolean }) {
  return (
    <>
      {workflow.error && !brief && <Failed workflow={workflow} />}
      {workflow.ended && (
        <Banner tone="off">
          {workflow.ended === "denied" ? (
            <span>
              Nothing went wrong: <Theirs>{workflow.ended_by ?? "somebody"}</Theirs> denied a change.
            </span>
          ) : (
            <span>Nothing went wrong: nobody decided in time.</span>
          )}
        </Banner>
      )}
      {workflow.held && (
        <Banner tone="warn">
          <span className="min-w-0 break-words">{workflow.held}</span>
        </Banner>
      )}
      {workflow.hold && (
        <Banner tone="off">
          <span className="min-w-0 break-words">{workflow.hold.text}</span>
        </Banner>
      )}
      {workflow.state === "failed" && workflow.rollback && !brief && (
        <Banner tone="off">
          <span className="min-w-0">
            <span className="block font-medium">You can go back</span>
            {workflow.rollback.says.map((line) => (
              <span key={line} className="block break-words">
                {line}
              </span>
            ))}
          </span>
          {workflow.rollback.command && (
            <span className="ml-auto">
              <Command>{workflow.rollback.command}</Command>
            </span>
          )}
        </Banner>
      )}
    </>
  );
}

const whos: Record<string, string> = {
  approver: "an approver",
  operator: "an operator",
  customer: "the customer",
  runner: "the runner",
  control_plane: "Berth",
  another_change: "another change",
  nobody: "nobody",
};
const tonesOfWho: Record<string, Tone> = { approver: "ask", operator: "ask", customer: "ask", nobody: "warn" };

/** What it waits for, on whom, and what ends that. */
export function Reasons({ items }: { items: Got<"/workflows/{workflow}/why">["items"] }) {
  return (
    <section aria-label="Why it waits" className="mb-4">
      <ul className="border-t border-line">
        {items.map((item, i) => (
          <li key={i} className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line py-1.5">
            <span className="flex min-w-0 items-baseline gap-3">
              <span className="self-center">
                <Glyph tone={tonesOfWho[item.who] ?? "wait"} />
              </span>
              <span className="min-w-0 break-words">
                <Theirs className="font-medium">{item.what}</Theirs>: {item.reason}
              </span>
            </span>
            <span className="text-dim">
              {whos[item.who] ?? item.who} can end it
              {item.retry_at && (
                <>
                  {" "}
                  · looks again <Time at={item.retry_at} />
                </>
              )}
              {item.deadline && (
                <>
                  {" "}
                  · ends by itself <Time at={item.deadline} />
                </>
              )}
            </span>
            {item.id?.startsWith("chg_") && (
              <Link to="/changes/$change" params={{ change: item.id }} className="text-link hover:underline">
                {item.code === "decision" ? "Review" : "Open change"}
              </Link>
            )}
            {item.unblock && (
              <span className="min-w-0 sm:ml-auto">
                <Command>{item.unblock}</Command>
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
