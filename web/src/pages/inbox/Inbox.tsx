// What waits for me, and what is wrong.
import { useQuery } from "@tanstack/react-query";
import { Link, useRouteContext, useRouter } from "@tanstack/react-router";
import { type ReactNode, Suspense, useState } from "react";
import { type Answer as Got, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { useShortcuts } from "~/frame/shortcuts";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { counts } from "~/ui/counts";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { Glyph, type Tone, wordOf } from "~/ui/State";
import { Time } from "~/ui/Time";
import { Theirs } from "~/ui/Theirs";

import { untilTold } from "./untold";
import { about, type Alert, says, shows } from "./alerts";
import { late } from "~/late";

const Acknowledge = late(() => import("./Acknowledge"));

type Change = Got<"/changes">["items"][number];

interface Row {
  key: string;
  tone: Tone;
  state: string;
  title: ReactNode;
  text: string;
  since: string;
  href: string;
  verb: string;
  /** An alert that somebody can take on. */
  alert?: Alert;
}

export function Inbox() {
  const changes = useQuery(reading("/changes", { query: { state: "proposed" } }));
  const alerts = useQuery({
    ...reading("/alerts", { query: { state: ["open", "held"] } }),
    // Read once more when people were told: what ended before has no event.
    refetchInterval: ({ state }) => untilTold(state.data?.items ?? [], Date.now()),
  });
  const decisions = (changes.data?.items ?? []).map(ofChange);
  const all = (alerts.data?.items ?? []).filter(shows).map(ofAlert);
  const groups = [
    { title: "Needs a decision", rows: decisions },
    { title: "Broken", rows: all.filter((a) => broken.has(a.kind)) },
    { title: "Will expire", rows: all.filter((a) => a.kind === "expiring") },
    { title: "Silent runners", rows: all.filter((a) => a.kind === "runner_silent" || a.kind === "chain_unreported") },
    { title: "Waiting for long", rows: all.filter((a) => a.kind === "waiting_too_long") },
    { title: "Drifted", rows: all.filter((a) => a.kind === "drift") },
  ].filter((g) => g.rows.length > 0);
  const rows = groups.flatMap<Row>((g) => g.rows);
  const [taken, setTaken] = useState<Alert>();
  const at = useRows(rows, setTaken);
  const waiting = decisions.length;
  return (
    <>
      <title>{waiting ? `(${waiting}) Inbox · Berth` : "Inbox · Berth"}</title>
      <h1 className="sr-only">Inbox</h1>
      <Answer of={changes}>{() => null}</Answer>
      <Answer of={alerts}>
        {() =>
          rows.length === 0 &&
          changes.data && (
            <Empty action={<Command>berth status</Command>}>
              Nothing waits for you and nothing is wrong. Changes that need a decision, and alerts, will be here.
            </Empty>
          )
        }
      </Answer>
      {groups.map(({ title, rows: ofGroup }) => (
        <Section key={title} title={title} count={ofGroup.length}>
          <ul>
            {ofGroup.map((row) => (
              <Line key={row.key} row={row} chosen={row.key === at} onTake={setTaken} />
            ))}
          </ul>
        </Section>
      ))}
      <Suspense>{taken && <Acknowledge alert={taken} onClose={() => setTaken(undefined)} />}</Suspense>
    </>
  );
}

const broken = new Set<Alert["kind"]>(["unhealthy", "workflow_failed", "objective"]);

const tones: Record<Alert["kind"], Tone> = {
  unhealthy: "bad",
  workflow_failed: "bad",
  objective: "warn",
  expiring: "warn",
  runner_silent: "unknown",
  chain_unreported: "unknown",
  waiting_too_long: "wait",
  drift: "drift",
};

function Line({ row, chosen, onTake }: { row: Row; chosen: boolean; onTake: (alert: Alert) => void }) {
  const { me } = useRouteContext({ from: "/inside" });
  const { alert } = row;
  return (
    <li data-chosen={chosen || undefined} className="flex items-center border-b border-line hover:bg-hover data-chosen:bg-chosen">
      <Link to={row.href} className="flex min-h-10 min-w-0 flex-1 flex-wrap items-center gap-x-4 gap-y-0.5 px-2 py-1.5 sm:flex-nowrap">
        <Glyph tone={row.tone} />
        <span className="sr-only">{row.state}</span>
        <span className="min-w-0 font-medium sm:w-56 sm:shrink-0">{row.title}</span>
        <span className="min-w-0 basis-full truncate text-dim sm:basis-auto sm:flex-1">
          <Theirs>{row.text}</Theirs>
        </span>
        <span className="text-xs text-dim">
          <Time at={row.since} />
        </span>
        <span className="ml-auto text-link sm:ml-0 sm:w-14 sm:text-right">{row.verb}</span>
      </Link>
      <span className="flex w-28 justify-end max-sm:hidden">
        {alert && (
          <Button
            look="quiet"
            aria-label={`Acknowledge ${about(alert)}`}
            // An alert names its install alone, so a grant that is limited may reach it or not: the control plane says so.
            refused={whyNot(
              me.grants.map(({ role }) => ({ role })),
              "workflows:write",
            )}
            onClick={() => onTake(alert)}
          >
            Acknowledge
          </Button>
        )}
      </span>
    </li>
  );
}

function ofChange(c: Change): Row {
  return {
    key: c.id,
    tone: "ask",
    state: "waits for a decision",
    title: <Name>{`${c.install.name} · ${c.resource?.name ?? wordOf(c.kind)}`}</Name>,
    text: [wordOf(c.kind), counts(c.counts), c.rollback_class && `rollback: ${wordOf(c.rollback_class)}`].filter(Boolean).join(" · "),
    since: c.proposed_at ?? c.created_at,
    href: `/changes/${c.id}`,
    verb: "Review",
  };
}

function ofAlert(a: Alert): Row & { kind: Alert["kind"] } {
  return {
    key: a.id,
    kind: a.kind,
    tone: tones[a.kind],
    state: wordOf(a.kind),
    title: <Name>{about(a)}</Name>,
    text: says(a),
    since: a.since,
    href: `/installs/${a.install.name}`,
    verb: "Open",
    ...(a.state === "open" && !a.acknowledged_by ? { alert: a } : {}),
  };
}

/** j and k move over the rows, Enter opens one, e takes on an alert. */
function useRows(rows: Row[], onTake: (alert: Alert) => void): string | undefined {
  const router = useRouter();
  const [at, setAt] = useState<string>();
  const index = rows.findIndex((r) => r.key === at);
  const move = (by: number) => setAt(rows[Math.min(Math.max(index + by, 0), rows.length - 1)]?.key);
  const row = rows[index];
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    Enter: row && (() => void router.navigate({ to: row.href })),
    e: row?.alert && (() => onTake(row.alert!)),
  });
  return at;
}
