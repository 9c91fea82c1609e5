// How an install is now: its resources, its health over a week, why it waits, and the last that happened.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type Answer as Got, reading } from "~/api/client";
import { GraphView } from "~/graph/Graph";
import type { GraphNode } from "~/graph/shape";
import { Answer, Empty } from "~/ui/Answer";
import { Command, Id } from "~/ui/Copy";
import { Facts } from "~/ui/Facts";
import { Failure } from "~/ui/Failure";
import { headline } from "~/ui/headline";
import { HealthStrip, share } from "~/ui/Health";
import { Section } from "~/ui/Section";
import { Glyph } from "~/ui/State";
import { Time } from "~/ui/Time";
import { duration } from "~/ui/time";
import { standing } from "./Cell";
import { word } from "~/command";
import { Entries } from "./Entries";
import type { TabProps } from "./Install";
import { Value } from "./Value";
import { Theirs } from "~/ui/Theirs";

export function Overview({ status }: TabProps) {
  const { name } = status.install;
  return (
    <>
      <Why install={name} />
      <Resources status={status} />
      <div className="grid grid-cols-1 gap-x-8 lg:grid-cols-2">
        <Health install={name} />
        <Recent install={name} />
      </div>
    </>
  );
}

function Why({ install }: { install: string }) {
  const why = useQuery(reading("/installs/{install}/why", { path: { install } }));
  const items = why.data?.items ?? [];
  if (why.data && items.length === 0) return null;
  return (
    <Section title="Why it is not where it should be" count={items.length} side={<Command>{`berth why ${word(install)}`}</Command>}>
      <Answer of={why} lines={2}>
        {() => (
          <ul className="@container">
            {items.map((item, i) => (
              <li key={i} className="flex flex-wrap items-center gap-x-3 gap-y-0.5 border-b border-line px-2 py-2 @3xl:flex-nowrap">
                <Glyph tone={whose[item.who] ?? "wait"} />
                <Theirs className="font-medium whitespace-nowrap">{item.what}</Theirs>
                <Reason text={item.reason} />
                <span className="shrink-0 text-dim">
                  {item.on && <Theirs>{item.on}</Theirs>}
                  {item.deadline && (
                    <>
                      {" "}
                      · ends <Time at={item.deadline} />
                    </>
                  )}
                  {item.retry_at && (
                    <>
                      {" "}
                      · looks again <Time at={item.retry_at} />
                    </>
                  )}
                </span>
                <span className="ml-auto flex shrink-0 items-center gap-3">
                  {item.unblock && <Command>{item.unblock}</Command>}
                  <WhyLink id={item.id} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </Answer>
    </Section>
  );
}

/** A reason; a long one is an error, which is shown by its first words. */
function Reason({ text }: { text: string }) {
  return headline(text) === text.trim() ? <Theirs className="min-w-0">{text}</Theirs> : <Failure text={text} />;
}

const whose: Record<string, "ask" | "wait" | "warn" | "busy"> = {
  approver: "ask",
  operator: "warn",
  customer: "ask",
  runner: "busy",
  control_plane: "busy",
  another_change: "wait",
};

function WhyLink({ id }: { id: string | undefined }) {
  if (id?.startsWith("chg"))
    return (
      <Link to="/changes/$change" params={{ change: id }} className="text-link underline">
        Review
      </Link>
    );
  if (id?.startsWith("wfl"))
    return (
      <Link to="/workflows/$workflow" params={{ workflow: id }} className="text-link underline">
        Open
      </Link>
    );
  if (id?.startsWith("alt"))
    return (
      <Link from="/installs/$install" search={{ tab: "checks" }} className="text-link underline">
        Checks
      </Link>
    );
  return null;
}

function Resources({ status }: TabProps) {
  const { install, newest_release: newest } = status;
  const navigate = useNavigate({ from: "/installs/$install" });
  const search = useSearch({ from: "/inside/installs/$install" });
  const graph = useQuery({
    ...reading("/installs/{install}/graph", { path: { install: install.name } }),
    enabled: install.release !== undefined,
  });
  const resources = useQuery(reading("/installs/{install}/resources", { path: { install: install.name } }));
  if (!install.release) {
    return (
      <Section title="Resources">
        <Empty action={<Command>{`berth installs provision ${word(install.name)}`}</Command>}>
          It was not provisioned yet. Its sandbox and components, and which needs which, will be here.
        </Empty>
      </Section>
    );
  }
  const known = new Map(resources.data?.items.map((r) => [r.name, r]));
  const on = [...known.values()].filter((r) => r.kind === "component" && !r.switched_off);
  const target = status.workflow?.release ?? install.release;
  const there = on.filter((r) => r.live_release?.number === target.number).length;
  const look = (node: GraphNode) => {
    const r = known.get(node.name);
    const { tone, word: says } = standing({
      state: node.state ?? "absent",
      health: node.health ?? "unknown",
      switched_off: node.switched_off,
    });
    const release = r?.live_release?.number;
    const behind = release && newest ? newest.number - release : 0;
    return {
      tone,
      word: says,
      detail: [
        release && `r${release}${behind > 0 ? ` ↑${behind}` : ""}`,
        r?.drift === "drifted" && "drifted",
        r?.locked_by && "changing now",
      ]
        .filter(Boolean)
        .join(" · "),
    };
  };
  return (
    <Section
      title="Resources"
      side={
        <span className="text-xs text-dim tabular-nums">
          {resources.data && `${there} of ${on.length} components on r${target.number}`}
        </span>
      }
    >
      <div className="pt-2">
        <Answer of={graph} lines={6}>
          {(g) => (
            <GraphView
              graph={g}
              label={`Resources of ${install.name}`}
              look={look}
              chosen={search.resource}
              onChoose={(resource) => void navigate({ search: { ...search, resource }, replace: true, resetScroll: false })}
              detail={(node) => <ResourceDetail name={node.name} resource={known.get(node.name)} install={install.name} />}
            />
          )}
        </Answer>
      </div>
    </Section>
  );
}

type Resource = Got<"/installs/{install}/resources">["items"][number];

function ResourceDetail({ resource: r, name, install }: { resource: Resource | undefined; name: string; install: string }) {
  if (!r) return null;
  const outputs = Object.entries(r.outputs);
  return (
    <>
      <Facts
        of={[
          ["Type", r.type],
          ["Health since", r.health_since && <Time at={r.health_since} />],
          ["Changed", <Time key="t" at={r.updated_at} />],
          [
            "Live change",
            r.live_change_id && (
              <Link to="/changes/$change" params={{ change: r.live_change_id }} className="text-link underline">
                Open the change
              </Link>
            ),
          ],
          [
            "Changing now",
            r.locked_by && (
              <Link to="/changes/$change" params={{ change: r.locked_by }} className="text-link underline">
                Open the change
              </Link>
            ),
          ],
          ["Waiting for it", r.queue && r.queue.length > 0 && `${r.queue.length} approved changes`],
          ["Artifact", r.live_artifact_digest && <Id>{r.live_artifact_digest}</Id>],
          ["Cluster", r.kubernetes_context],
        ]}
      />
      {outputs.length > 0 && (
        <details>
          <summary className="cursor-pointer text-dim">
            {outputs.length} {outputs.length === 1 ? "output" : "outputs"}
          </summary>
          <Facts of={outputs.map(([k, v]) => [k, <Value key={k}>{v}</Value>] as const)} />
        </details>
      )}
      <p className="pt-1">
        <Command>{`berth deploy ${word(install)}/${word(name)}`}</Command>
      </p>
    </>
  );
}

const week = 7 * 24 * 3600 * 1000;

function Health({ install }: { install: string }) {
  const past = useQuery(reading("/installs/{install}/health/history", { path: { install }, query: { parts: 84 } }));
  return (
    <Section title="Health, 7 days" side={<Command>{`berth installs health ${word(install)} --since 7d`}</Command>}>
      <Answer of={past} lines={3}>
        {(history) => (
          <div className="flex flex-col gap-2 pt-3">
            <HealthStrip strip={history.install.strip} label={availability(history.install)} />
            {history.budget && (
              <p className={history.budget.left_seconds < 0 ? "text-bad" : "text-dim"}>
                Objective {history.budget.objective} %: {duration(Math.abs(history.budget.left_seconds) * 1000)}{" "}
                {history.budget.left_seconds < 0 ? "over" : "left"} of {duration(history.budget.allowed_seconds * 1000)}
              </p>
            )}
            {history.resources.map((r) => (
              <div key={r.id} className="grid grid-cols-[8rem_1fr] items-center gap-3">
                <Theirs className="truncate">{r.name}</Theirs>
                <HealthStrip flat strip={r.past.strip} label={share(r.past)} />
              </div>
            ))}
            {history.install.episodes.slice(0, 5).map((e) => (
              <p key={e.from} className="flex items-center gap-2">
                <Glyph tone="bad" />
                unhealthy <Time at={e.from} />
                <span className="text-dim">
                  {e.to
                    ? `for ${duration(Date.parse(e.to) - Date.parse(e.from))}`
                    : `and still, since ${duration(Math.min(week, Date.now() - Date.parse(e.from)))}`}
                </span>
              </p>
            ))}
          </div>
        )}
      </Answer>
    </Section>
  );
}

function availability(past: { availability?: number; unhealthy_seconds: number; unknown_seconds: number }): string {
  return [
    share(past),
    past.unhealthy_seconds > 0 && `${duration(past.unhealthy_seconds * 1000)} unhealthy`,
    past.unknown_seconds > 60 && `${duration(past.unknown_seconds * 1000)} unknown`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function Recent({ install }: { install: string }) {
  const timeline = useQuery(reading("/installs/{install}/timeline", { path: { install }, query: { limit: 8 } }));
  return (
    <Section
      title="What happened"
      side={
        <Link to="/installs/$install" params={{ install }} search={{ tab: "timeline" }} className="text-link underline">
          All of it
        </Link>
      }
    >
      <Answer of={timeline}>{(page) => <Entries entries={page.items} />}</Answer>
    </Section>
  );
}
