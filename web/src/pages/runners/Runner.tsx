// One runner: is it there, what does it do now, what has the customer said?
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useRouteContext } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { usePages } from "~/api/all";
import { berth, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { LogLinks } from "~/frame/AtSide";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command, Id } from "~/ui/Copy";
import { Facts } from "~/ui/Facts";
import { More } from "~/ui/More";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time, Took } from "~/ui/Time";
import { type Runner as One, standing } from "./Runners";
import { written } from "~/diff/visible";
import { late } from "~/late";

const Confirm = late(() => import("~/ui/Confirm"));

export function Runner() {
  const { runner } = useParams({ from: "/inside/runners/$runner" });
  const one = useQuery(reading("/runners/{runner}", { path: { runner } }));
  return (
    <Answer of={one}>
      {(r) => (
        <>
          <title>{written(`${r.name} · Runner · Berth`)}</title>
          <Head runner={r} />
          <div className="grid gap-x-10 lg:grid-cols-2">
            <Section title="What it says">
              <Facts
                of={[
                  [
                    "Install",
                    r.install && (
                      <Link to="/installs/$install" params={{ install: r.install.name }} className="text-link hover:underline">
                        {r.install.name}
                      </Link>
                    ),
                  ],
                  ["Problem", r.problem && <span className="text-bad">{r.problem}</span>],
                  [
                    "Switch",
                    <span key="s">
                      {`${r.switch.replaceAll("_", " ")}${r.switch_reason ? `: “${r.switch_reason}”` : ""}`}{" "}
                      {r.switch_since && (
                        <span className="text-dim">
                          (<Time at={r.switch_since} />)
                        </span>
                      )}
                    </span>,
                  ],
                  ["Heard", r.last_seen_at && <Time at={r.last_seen_at} />],
                  ["Sessions", r.epoch],
                  ["Jobs at once", r.slots],
                  [
                    "Isolation",
                    r.trust === "isolated" ? "each job has a user of its own" : "development: jobs share the user of the agent",
                  ],
                  [
                    "Version",
                    <span key="v">
                      <span className="font-mono text-xs">{r.version}</span>
                      {r.newest_version && <span className="text-warn">{` · ${r.newest_version} is on offer; the customer decides`}</span>}
                    </span>,
                  ],
                  [
                    "Id",
                    <Id key="i" keep={34}>
                      {r.id}
                    </Id>,
                  ],
                ]}
              />
            </Section>
            <Section title="Its machine">
              <Facts
                of={Object.entries((r.facts ?? {}) as Record<string, unknown>).map(
                  ([name, value]) => [name.replaceAll("_", " "), said(value)] as const,
                )}
              />
            </Section>
          </div>
          <Jobs runner={r.id} />
        </>
      )}
    </Answer>
  );
}

const said = (value: unknown) =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : JSON.stringify(value);

function Head({ runner: r }: { runner: One }) {
  const { me } = useRouteContext({ from: "/inside" });
  const [asks, setAsks] = useState(false);
  const no = whyNot(me.grants, "runners:write", r.install ? { install: r.install.id } : {});
  return (
    <header className="mb-5 flex flex-wrap items-center gap-x-4 gap-y-2">
      <h1 className="text-xl font-semibold">
        <Name>{r.name}</Name>
      </h1>
      <State {...standing(r)} />
      <div className="ml-auto flex flex-wrap items-center gap-2">
        {r.install && <Command>{`berth runners replace ${r.install.name}`}</Command>}
        <Button look="danger" refused={no ?? (r.state === "revoked" ? "it is revoked already" : undefined)} onClick={() => setAsks(true)}>
          Revoke runner
        </Button>
      </div>
      <Suspense>
        {asks && (
          <Confirm
            title={`Revoke the runner ${r.name}`}
            verb="Revoke runner"
            name={r.name}
            command={`berth runners revoke ${r.id}`}
            act={() => berth.POST("/runners/{runner}/revoke", { params: { path: { runner: r.id } } })}
            onClose={() => setAsks(false)}
          >
            Its sessions end within seconds, and no machine may use its identity again. What it runs now counts as uncertain. To go on,
            enrol another machine.
          </Confirm>
        )}
      </Suspense>
    </header>
  );
}

function Jobs({ runner }: { runner: string }) {
  const jobs = usePages("/runners/{runner}/jobs", { path: { runner }, query: { limit: 50 } });
  return (
    <Section title="Jobs">
      <Answer of={jobs}>
        {(all) =>
          all.length === 0 ? (
            <Empty>It has had no job yet.</Empty>
          ) : (
            <Table
              label="Jobs"
              rows={all}
              id={(j) => j.id}
              columns={[
                { head: "State", cell: (j) => <State state={j.state} /> },
                {
                  head: "What",
                  cell: (j) => {
                    const what = `${j.operation} ${j.resource?.name ?? j.kind.replaceAll("_", " ")}`;
                    if (j.change_id)
                      return (
                        <Link to="/changes/$change" params={{ change: j.change_id }} className="hover:underline">
                          {what}
                        </Link>
                      );
                    return j.workflow_id ? (
                      <Link to="/workflows/$workflow" params={{ workflow: j.workflow_id }} className="hover:underline">
                        {what}
                      </Link>
                    ) : (
                      what
                    );
                  },
                },
                {
                  head: "Install",
                  wide: true,
                  cell: (j) =>
                    j.install && (
                      <Link to="/installs/$install" params={{ install: j.install.name }} className="hover:underline">
                        {j.install.name}
                      </Link>
                    ),
                },
                { head: "Queued", cell: (j) => <Time at={j.queued_at} /> },
                { head: "Took", number: true, cell: (j) => j.started_at && <Took from={j.started_at} to={j.finished_at} /> },
                {
                  head: "Log",
                  cell: (j) => j.stream_id && <LogLinks stream={j.stream_id} />,
                },
                {
                  head: "Error",
                  wide: true,
                  cell: (j) => (
                    <span className="text-bad" title={j.error}>
                      {j.error}
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </Answer>
      <More of={jobs} />
    </Section>
  );
}
