// What stands next to a plan: why it is made, what it newly needs, what rules say of it,
// what going back costs, and whose word counts.
import { Problem } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { reading } from "~/api/client";
import { Command, Id } from "~/ui/Copy";
import { Fact } from "~/ui/Facts";
import { Glyph, State, type Tone, wordOf } from "~/ui/State";
import { Time } from "~/ui/Time";
import { Visible } from "~/ui/Visible";
import type { Change } from "./Change";
import { Footprint } from "./Footprint";
import { Theirs } from "~/ui/Theirs";

export function ChangeSide({ change }: { change: Change }) {
  // On a small screen it is one line that opens, above what the change does.
  const [open, setOpen] = useState(false);
  return (
    <aside
      aria-label="About this change"
      className="min-w-0 lg:sticky lg:top-12 lg:col-start-2 lg:row-start-1 lg:max-h-[calc(100dvh-7rem)] lg:self-start lg:overflow-y-auto lg:pb-6"
    >
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex min-h-10 w-full items-center gap-2 border-y border-line text-left lg:hidden"
      >
        <span className="font-semibold">{open ? "Hide" : "Why, footprint, policies, approvals"}</span>
        <span className="ml-auto truncate text-dim">{summary(change)}</span>
      </button>
      <div className={open ? "" : "max-lg:hidden"}>
        <About change={change} />
      </div>
    </aside>
  );
}

/** All that is said of a change, but for what it does. */
export function About({ change }: { change: Change }) {
  return (
    <>
      <Approvals change={change} />
      <Why change={change} />
      <Rollback change={change} />
      <Footprint change={change} />
      <Policies change={change} />
      <Before change={change} />
      <Effect change={change} />
    </>
  );
}

export function Part({ title, side, children }: { title: string; side?: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title} className="border-b border-line py-3 first:lg:pt-2.5">
      <h2 className="mb-1.5 flex items-baseline gap-2 text-sm font-semibold">
        {title}
        {side && <span className="ml-auto text-xs font-normal text-dim">{side}</span>}
      </h2>
      {children}
    </section>
  );
}

/** The worst of it in few words. */
function summary(change: Change): string {
  const against = (change.policies ?? []).filter((p) => p.answer !== "allow").length;
  return [
    change.plan?.reversal && wordOf(change.plan.reversal.class),
    change.policies && (against ? `${against} policies against it` : "policies pass"),
    change.approvals && change.approvals.missing > 0 && `${change.approvals.missing} more to approve`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function Approvals({ change }: { change: Change }) {
  const { approvals, consent, decisions } = change;
  return (
    <Part title="Approvals" side={approvals && `${Math.max(0, approvals.needed - approvals.missing)} of ${approvals.needed}`}>
      {approvals && <p className="break-words">{approvals.summary}</p>}
      {approvals?.void.map((why) => (
        <p key={why} className="break-words text-dim">
          {why}
        </p>
      ))}
      {consent && (
        <p className="mt-1 flex gap-2">
          <Glyph tone={consent.state === "given" ? "good" : consent.state === "denied" ? "bad" : "wait"} />
          <span className="min-w-0 break-words">
            {consent.state === "needed"
              ? `The customer has to agree${consent.still ? ` (${consent.still} more ${consent.still === 1 ? "key" : "keys"})` : ""}.`
              : consent.state === "given"
                ? "The customer agreed."
                : "The customer denied it."}{" "}
            {consent.by.length > 0 && <span className="text-dim">{consent.by.join(", ")} </span>}
            {consent.why && <Visible>{consent.why}</Visible>}
          </span>
        </p>
      )}
      {decisions.length === 0 && !approvals && <p className="text-dim">Nobody decided yet.</p>}
      <ul>
        {decisions.map((d) => (
          <li key={d.id} className="mt-1.5 flex gap-2">
            <Glyph tone={d.answer === "approve" ? "good" : d.answer === "deny" ? "bad" : "off"} />
            <span className="min-w-0 break-words">
              <Theirs className="font-medium">{d.actor}</Theirs> {said[d.answer]} <Time at={d.created_at} />
              {d.rule !== "person" && <span className="text-dim"> · {wordOf(d.rule)}</span>}
              {d.effect_digest !== change.effect_digest && <span className="text-warn"> · another effect</span>}
              {d.note && (
                <span className="block text-dim">
                  “<Visible>{d.note}</Visible>”
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
      {change.state === "proposed" && change.expires_at && (
        <p className="mt-1.5 text-dim">
          Ends without a decision <Time at={change.expires_at} />.
        </p>
      )}
    </Part>
  );
}

const said: Record<string, string> = { approve: "approved", deny: "denied", plan_again: "had it planned again" };

function Why({ change }: { change: Change }) {
  const workflow = useQuery(reading("/workflows/{workflow}", { path: { workflow: change.workflow_id } }));
  const release = useQuery({
    ...reading("/releases/{release}", { path: { release: change.release?.id ?? "" } }),
    enabled: change.release !== undefined,
    retry: false,
  });
  const step = workflow.data?.steps?.find((s) => s.id === change.step_id);
  const origin = release.data?.origin;
  return (
    <Part title="Why">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-1">
        <Fact name="Workflow">
          <Link
            to="/workflows/$workflow"
            params={{ workflow: change.workflow_id }}
            search={{ step: change.step_id }}
            className="text-link hover:underline"
          >
            {workflow.data ? `${wordOf(workflow.data.kind)} ${workflow.data.number}` : "its workflow"}
          </Link>
          {workflow.data && (
            <span className="text-dim">
              {" "}
              by <Theirs>{workflow.data.created_by}</Theirs> <Time at={workflow.data.created_at} />
            </span>
          )}
        </Fact>
        {step && <Fact name="Step">{step.reason}</Fact>}
        {change.release && (
          <Fact name="Release">
            {release.data ? (
              <>
                <Link
                  to="/apps/$app/releases/$number"
                  params={{ app: release.data.app.name, number: String(change.release.number) }}
                  className="text-link hover:underline"
                >
                  r{change.release.number}
                </Link>
                <span className="text-dim"> of {release.data.app.name}</span>
                {release.data.revoked && <span className="text-bad"> · revoked</span>}
              </>
            ) : (
              `r${change.release.number}`
            )}
          </Fact>
        )}
        {origin?.message && (
          <Fact name="Notes">
            <span className="line-clamp-4 whitespace-pre-line" title={origin.message}>
              <Visible>{origin.message}</Visible>
            </span>
          </Fact>
        )}
        {origin?.commit && (
          <Fact name="Commit">
            <Id keep={8}>{origin.commit}</Id>
            {origin.author && <Theirs className="text-dim">{` ${origin.author}`}</Theirs>}
            {origin.modified && <span className="text-warn"> with changes in no commit</span>}
          </Fact>
        )}
        <Fact name="Inputs">version {change.inputs_version}</Fact>
        {change.proposed_at && (
          <Fact name="Proposed">
            <Time at={change.proposed_at} />
          </Fact>
        )}
      </dl>
    </Part>
  );
}

const classes: Record<string, [Tone, string]> = {
  reversible: ["good", "Reversible"],
  unknown: ["unknown", "The plan does not tell"],
  data_loss: ["warn", "What was written since is lost"],
  irreversible: ["bad", "Cannot be undone"],
};

function Rollback({ change }: { change: Change }) {
  const reversal = change.plan?.reversal;
  if (!reversal) return null;
  const [tone, text] = classes[reversal.class] ?? ["unknown" as const, wordOf(reversal.class)];
  return (
    <Part title="Going back">
      <State state={reversal.class} tone={tone} word={text} />
      <ul className="mt-1 list-disc pl-5 text-dim">
        {reversal.why?.map((why) => (
          <li key={why} className="break-words">
            <Visible>{why}</Visible>
          </li>
        ))}
      </ul>
    </Part>
  );
}

const answers: Record<string, Tone> = { allow: "good", warn: "warn", ask: "ask", deny: "bad" };

function Policies({ change }: { change: Change }) {
  const reports = change.policies ?? [];
  const against = reports.filter((r) => r.answer !== "allow");
  return (
    <Part title="Policies" side={against.length > 0 ? `${against.length} against it` : undefined}>
      {reports.length === 0 && <p className="text-dim">No policy looked at it.</p>}
      <ul className="flex flex-col gap-1.5">
        {against.map((r) => (
          <li key={`${r.side} ${r.policy}`}>
            <div className="flex items-center gap-2">
              <Glyph tone={answers[r.answer] ?? "unknown"} />
              <Theirs className="min-w-0 truncate font-medium" title={r.policy}>
                {r.policy}
              </Theirs>
              <span className="ml-auto text-xs whitespace-nowrap text-dim">
                {r.side === "customer" ? "guardrail · " : ""}
                {r.answer}
              </span>
            </div>
            {r.findings.map((f, i) => (
              <p key={i} className="pl-[22px] break-words text-dim">
                <span className="font-mono text-xs">
                  <Visible>{f.document}</Visible>
                </span>{" "}
                {f.message && <Visible>{f.message}</Visible>}
              </p>
            ))}
            {r.findings_left > 0 && <p className="pl-[22px] text-dim">and {r.findings_left} more</p>}
            {r.override && (
              <p className="pl-[22px] text-warn">
                <Theirs>{r.override.actor}</Theirs> let it pass: <Visible>{r.override.reason}</Visible>
              </p>
            )}
          </li>
        ))}
      </ul>
      {against.length < reports.length && (
        <details>
          <summary className="cursor-pointer text-dim">
            {reports.length - against.length} {reports.length - against.length === 1 ? "allows" : "allow"} it
          </summary>
          <ul className="pt-1">
            {reports
              .filter((r) => r.answer === "allow")
              .map((r) => (
                <li key={`${r.side} ${r.policy}`} className="flex items-center gap-2">
                  <Glyph tone="good" />
                  <Theirs className="min-w-0 truncate" title={r.policy}>
                    {r.policy}
                  </Theirs>
                  {r.side === "customer" && <span className="ml-auto text-xs text-dim">guardrail</span>}
                </li>
              ))}
          </ul>
        </details>
      )}
    </Part>
  );
}

function Before({ change }: { change: Change }) {
  const resource = change.resource;
  const earlier = useQuery({
    ...reading("/changes", { query: { install: change.install.name, resource: resource?.id ?? "", limit: 20 } }),
    enabled: resource !== undefined,
  });
  if (!resource) return null;
  const before = earlier.data?.items.filter((c) => c.id !== change.id && c.created_at < change.created_at).slice(0, 3) ?? [];
  return (
    <Part title="Before this">
      {earlier.data && before.length === 0 && <p className="text-dim">It is the first change of {resource.name}.</p>}
      <ul>
        {before.map((c) => (
          <li key={c.id}>
            <Link to="/changes/$change" params={{ change: c.id }} className="flex min-h-7 items-center gap-2 hover:bg-hover">
              <State state={c.state} />
              <span className="ml-auto text-dim">
                <Time at={c.created_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Effect({ change }: { change: Change }) {
  const granted = ["executing", "applied", "failed", "uncertain"].includes(change.state);
  const capsule = useQuery({ ...reading("/changes/{change}/capsule", { path: { change: change.id } }), enabled: granted });
  return (
    <Part title="What is signed">
      {change.effect_digest ? (
        <>
          <p className="text-dim">The digest of the effect, which a decision names:</p>
          <p className="font-mono text-xs break-all select-all">{change.effect_digest}</p>
        </>
      ) : (
        <p className="text-dim">There is no effect yet.</p>
      )}
      {change.approved_effect_digest && change.approved_effect_digest !== change.effect_digest && (
        <p className="mt-1 text-warn">
          Approved was another one: <span className="font-mono text-xs break-all">{change.approved_effect_digest}</span>
        </p>
      )}
      {capsule.data && (
        <p className="mt-1.5">
          Carried out by a signed order, by{" "}
          {capsule.data.key_ids.map((key) => (
            <Id key={key}>{key}</Id>
          ))}
          <Command>{`berth changes capsule ${change.id}`}</Command>
        </p>
      )}
      {capsule.error && !(capsule.error instanceof Problem && capsule.error.status === 404) && (
        <p className="text-dim">The signed order could not be read.</p>
      )}
      {change.effect && (
        <details className="mt-1.5">
          <summary className="cursor-pointer text-link">The effect, whole</summary>
          <pre className="mt-1 max-h-80 overflow-auto rounded-md bg-raised p-2 font-mono text-xs">
            <Visible>{JSON.stringify(change.effect, null, 2)}</Visible>
          </pre>
        </details>
      )}
    </Part>
  );
}
