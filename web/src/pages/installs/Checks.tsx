// Health checks: what each said last, and what the runner did about it.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { usePages } from "~/api/all";
import { type Answer as Got, reading } from "~/api/client";
import { Answer, Empty } from "~/ui/Answer";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { word } from "~/command";
import type { TabProps } from "./Install";
import { Theirs } from "~/ui/Theirs";

type Check = Got<"/installs/{install}/health">["checks"][number];
type Remediation = Got<"/installs/{install}/remediations">["items"][number];

const worry: Record<string, number> = { unhealthy: 0, unknown: 1 };

const worstFirst = (checks: readonly Check[]): Check[] => checks.toSorted((a, b) => (worry[a.verdict] ?? 2) - (worry[b.verdict] ?? 2));

export function Checks({ status }: TabProps) {
  const { name } = status.install;
  const health = useQuery(reading("/installs/{install}/health", { path: { install: name } }));
  const remediations = usePages("/installs/{install}/remediations", { path: { install: name }, query: { limit: 50 } });
  return (
    <>
      <Section title="Health checks" side={<Command>{`berth installs health ${word(name)}`}</Command>}>
        <Answer of={health}>
          {({ checks }) =>
            checks.length === 0 ? (
              <Empty>No check has run yet. The probes of components and the app's own checks will be here.</Empty>
            ) : (
              <ul>
                {worstFirst(checks).map((c) => (
                  <CheckLine key={c.name} check={c} />
                ))}
              </ul>
            )
          }
        </Answer>
      </Section>
      <Section title="What the runner did by itself">
        <Answer of={remediations}>
          {(items) =>
            items.length === 0 ? (
              <Empty>Nothing. When a check stays unhealthy and the app names an action for that, its runs will be here.</Empty>
            ) : (
              <Table<Remediation>
                label="Remediations"
                rows={items}
                id={(r) => r.id}
                columns={[
                  { head: "Check", cell: (r) => <Theirs className="font-medium">{r.check}</Theirs> },
                  { head: "Action", cell: (r) => <Theirs>{r.action}</Theirs> },
                  { head: "Outcome", cell: (r) => <State state={r.state} tone={r.state === "helped" ? "good" : undefined} /> },
                  { head: "Attempts", number: true, cell: (r) => `${r.attempts} of ${r.attempts_of}` },
                  { head: "Began", cell: (r) => <Time at={r.began_at} /> },
                ]}
              />
            )
          }
        </Answer>
        <More of={remediations} />
      </Section>
    </>
  );
}

function CheckLine({ check: c }: { check: Check }) {
  return (
    <li className="border-b border-line px-2 py-2">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <Theirs className="min-w-0 font-medium sm:w-56">{c.name}</Theirs>
        <State state={c.verdict} />
        <span className="text-dim">
          since <Time at={c.since} />
        </span>
        <span
          className="ml-auto flex items-center gap-0.5"
          aria-label={`Last outcomes: ${c.recent.map((o) => (o.ok ? "ok" : "bad")).join(", ")}`}
          role="img"
        >
          {[...c.recent].reverse().map((o) => (
            <span
              key={o.at}
              title={`${o.unknown ? "unknown" : o.ok ? "ok" : "bad"}, ${new Date(o.at).toLocaleString()}`}
              className={`w-1.5 rounded-[1px] ${o.unknown ? "h-1.5 bg-line-strong" : o.ok ? "h-4 bg-good" : "h-2.5 bg-bad"}`}
            />
          ))}
        </span>
      </div>
      {c.says && <p className="mt-1 text-bad">{c.says}</p>}
      {c.findings?.map((f) => (
        <p key={f.object} className="mt-1">
          <Theirs className="font-mono text-xs">{f.object}</Theirs>{" "}
          <span className="text-dim">{[f.condition, f.pod, f.event].filter(Boolean).join(" · ")}</span>
        </p>
      ))}
      {c.certificates?.map((cert) => (
        <p key={cert.fingerprint} className={cert.soon ? "mt-1 text-warn" : "mt-1 text-dim"}>
          certificate of <Theirs>{cert.subject}</Theirs> in <Theirs className="font-mono text-xs">{cert.place}</Theirs> ends{" "}
          <Time at={cert.not_after} />
        </p>
      ))}
      {c.change_id && (
        <Link to="/changes/$change" params={{ change: c.change_id }} className="text-xs text-link underline">
          The change that it looks at
        </Link>
      )}
    </li>
  );
}
