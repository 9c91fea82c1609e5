// What can be run in an install, and what ran.
import { useQuery } from "@tanstack/react-query";
import { Link, useRouteContext } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { usePages } from "~/api/all";
import { type Answer as Got, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { LogLinks } from "~/frame/AtSide";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time, Took } from "~/ui/Time";
import { word } from "~/command";
import type { TabProps } from "./Install";
import { Theirs } from "~/ui/Theirs";
import { late } from "~/late";

const Run = late(() => import("./Run"));

export type Action = Got<"/installs/{install}/actions">["items"][number];
type ActionRun = Got<"/action-runs">["items"][number];

export function Actions({ status }: TabProps) {
  const { install } = status;
  const { me } = useRouteContext({ from: "/inside" });
  const no = whyNot(me.grants, "workflows:write", { customer: install.customer.id, app: install.app.id, install: install.id });
  const actions = useQuery(reading("/installs/{install}/actions", { path: { install: install.name } }));
  const runs = usePages("/action-runs", { query: { install: install.name, limit: 50 } });
  const [asks, setAsks] = useState<Action>();
  return (
    <>
      <Section title="Actions" side={<Command>{`berth actions list ${word(install.name)}`}</Command>}>
        <Answer of={actions}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty>The release of this install has no actions.</Empty>
            ) : (
              <ul>
                {items.map((a) => (
                  <li key={a.name} className="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line px-2 py-2">
                    <span className="min-w-0 flex-1 basis-64">
                      <span className="flex flex-wrap items-center gap-x-2">
                        <Theirs className="font-medium">{a.name}</Theirs>
                        <span className="text-xs text-dim">
                          {[a.health_check && "health check", a.unattended && "starts by itself", ...a.triggers.map(triggered)]
                            .filter(Boolean)
                            .join(" · ")}
                        </span>
                      </span>
                      {a.description && (
                        <span className="block text-dim">
                          <Theirs>{a.description}</Theirs>
                        </span>
                      )}
                    </span>
                    {a.last_run ? <LastRun run={a.last_run} /> : <span className="text-dim">never ran</span>}
                    <Button refused={no} onClick={() => setAsks(a)}>
                      Run…
                    </Button>
                  </li>
                ))}
              </ul>
            )
          }
        </Answer>
      </Section>
      <Section title="Runs" side={<Command>{`berth actions runs --install ${word(install.name)}`}</Command>}>
        <Answer of={runs}>
          {(items) =>
            items.length === 0 ? (
              <Empty>No action ran yet.</Empty>
            ) : (
              <Table<ActionRun>
                label="Runs of actions"
                rows={items}
                id={(r) => r.id}
                columns={[
                  { head: "State", cell: (r) => <State state={r.state} tone={r.state === "missed" ? "warn" : undefined} /> },
                  { head: "Action", cell: (r) => <Theirs className="font-medium">{r.action}</Theirs> },
                  {
                    head: "Started by",
                    cell: (r) => (
                      <Theirs className="text-dim">{r.trigger === "manual" ? r.created_by : r.trigger.replaceAll("_", " ")}</Theirs>
                    ),
                  },
                  { head: "When", cell: (r) => <Time at={r.started_at ?? r.created_at} /> },
                  {
                    head: "Took",
                    number: true,
                    wide: true,
                    cell: (r) => r.started_at && <Took from={r.started_at} to={r.finished_at ?? r.reported_at} />,
                  },
                  { head: "Says", wide: true, cell: (r) => <span className="text-bad">{r.error}</span> },
                  { head: "", cell: (r) => <RunLinks run={r} /> },
                ]}
              />
            )
          }
        </Answer>
        <More of={runs} />
      </Section>
      <Suspense>{asks && <Run install={install.name} action={asks} onClose={() => setAsks(undefined)} />}</Suspense>
    </>
  );
}

const triggered = (t: Action["triggers"][number]): string =>
  t.cron_schedule ? `${t.cron_schedule} (UTC)` : [t.type.replaceAll("_", " "), t.component].filter(Boolean).join(" ");

function LastRun({ run }: { run: ActionRun }) {
  return (
    <span className="flex items-center gap-3">
      <State state={run.state} tone={run.state === "missed" ? "warn" : undefined} />
      <span className="text-xs text-dim">
        <Time at={run.started_at ?? run.created_at} />
      </span>
      <RunLinks run={run} />
    </span>
  );
}

function RunLinks({ run }: { run: ActionRun }) {
  return (
    <span className="flex gap-2">
      {run.workflow_id && (
        <Link to="/workflows/$workflow" params={{ workflow: run.workflow_id }} className="text-link underline">
          Open
        </Link>
      )}
      {run.stream_id && <LogLinks stream={run.stream_id} />}
    </span>
  );
}
