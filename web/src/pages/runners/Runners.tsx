// Who carries it out: is each there, what version is it, and has the customer paused it?
import { Link } from "@tanstack/react-router";
import type { Answer as Got } from "~/api/client";
import { usePages } from "~/api/all";
import { Answer, Empty } from "~/ui/Answer";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { Theirs } from "~/ui/Theirs";

export type Runner = Got<"/runners">["items"][number];

export function Runners() {
  const runners = usePages("/runners", { query: { limit: 200 } });
  return (
    <>
      <title>Runners · Berth</title>
      <h1 className="sr-only">Runners</h1>
      <Answer of={runners}>
        {(all) =>
          all.length === 0 ? (
            <Empty action={<Command>berth installs create NAME --app APP --customer CUSTOMER</Command>}>
              No runner yet. Each install gets one; it comes with the install.
            </Empty>
          ) : (
            <>
              <Group title="Need a look" rows={all.filter(needsALook)} />
              <Group title="Well" rows={all.filter((r) => !needsALook(r) && r.state !== "revoked")} />
              <Group title="Revoked" rows={all.filter((r) => r.state === "revoked")} />
            </>
          )
        }
      </Answer>
      <More of={runners} />
    </>
  );
}

/** How a runner stands, in one word of the states. */
export function standing(r: Runner): { state: string; word?: string } {
  if (r.state === "revoked") return { state: "revoked" };
  if (r.state === "pending") return { state: "pending", word: "not enrolled yet" };
  if (r.disputed_since) return { state: "needs_attention", word: "two processes hold its key" };
  if (!r.online) return { state: "silent" };
  if (r.problem) return { state: "unhealthy", word: "has a problem" };
  if (r.switch !== "run") return { state: "paused", word: r.switch.replaceAll("_", " ") };
  return { state: "online" };
}

const needsALook = (r: Runner) => !["online", "revoked", "pending"].includes(standing(r).state);

function Group({ title, rows }: { title: string; rows: Runner[] }) {
  if (rows.length === 0) return null;
  return (
    <Section title={title} count={rows.length}>
      <Table
        label={title}
        rows={rows}
        id={(r) => r.id}
        columns={[
          {
            head: "Runner",
            cell: (r) => (
              <Link to="/runners/$runner" params={{ runner: r.id }} className="font-medium hover:underline">
                <Name>{r.name}</Name>
              </Link>
            ),
          },
          { head: "State", cell: (r) => <State {...standing(r)} /> },
          { head: "Heard", cell: (r) => (r.last_seen_at ? <Time at={r.last_seen_at} /> : <span className="text-dim">never</span>) },
          {
            head: "Version",
            cell: (r) => (
              <>
                <Theirs className="font-mono text-xs">{r.version}</Theirs>{" "}
                {r.newest_version && <Theirs className="text-xs text-warn">{`${r.newest_version} is there`}</Theirs>}
              </>
            ),
          },
          { head: "Kind", wide: true, cell: (r) => (r.kind === "build" ? "builds" : "an install's") },
          { head: "Jobs run as", wide: true, cell: (r) => (r.trust === "isolated" ? "their own user" : "the agent's user") },
          { head: "Note", wide: true, cell: (r) => <span className="text-dim">{r.problem ?? r.switch_reason}</span> },
        ]}
      />
    </Section>
  );
}
