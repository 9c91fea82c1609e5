import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { usePages } from "~/api/all";
import { type Answer as Got, reading } from "~/api/client";
import { word } from "~/command";
import { Answer, Empty } from "~/ui/Answer";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { State, type Tone } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import type { AppTabProps } from "./App";
import { Theirs } from "~/ui/Theirs";

type Policy = Got<"/apps/{app}/policies">["items"][number];
type Report = Got<"/policy-reports">["items"][number];

const looks: Record<Report["answer"], Tone> = { allow: "good", warn: "warn", ask: "ask", deny: "bad" };

/** What the app forbids, and what that said of changes. */
export function Policies({ app }: AppTabProps) {
  const policies = useQuery(reading("/apps/{app}/policies", { path: { app: app.name } }));
  const reports = usePages("/policy-reports", { query: { app: app.name, limit: 50 } });
  return (
    <>
      <Section title="Policies" side={<Command>{`berth policies list ${word(app.name)}`}</Command>}>
        <Answer of={policies}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty>The app has no policies. Rules of its folder (policies/) that changes have to keep will be here.</Empty>
            ) : (
              <Table<Policy>
                label="Policies"
                rows={items}
                id={(p) => p.name}
                columns={[
                  { head: "Policy", cell: (p) => <Theirs className="font-medium">{p.name}</Theirs> },
                  { head: "Looks at", cell: (p) => p.type.replaceAll("_", " ") },
                  { head: "Engine", cell: (p) => p.engine },
                  { head: "For", cell: (p) => (p.components.length === 0 ? "all components" : p.components.join(", ")) },
                  { head: "File", wide: true, cell: (p) => <Theirs className="font-mono text-xs">{p.contents_file ?? p.file}</Theirs> },
                ]}
              />
            )
          }
        </Answer>
      </Section>
      <Section title="What they said" side={<Command>{`berth policies report --app ${word(app.name)}`}</Command>}>
        <Answer of={reports}>
          {(items) =>
            items.length === 0 ? (
              <Empty>No change was judged yet.</Empty>
            ) : (
              <Table<Report>
                label="Policy reports"
                rows={items}
                id={(r) => `${r.change_id} ${r.side} ${r.policy}`}
                columns={[
                  {
                    head: "Answer",
                    cell: (r) => (
                      <State
                        state={r.answer}
                        tone={looks[r.answer]}
                        word={r.override ? `${r.answer}, let pass by ${r.override.actor}` : r.answer}
                      />
                    ),
                  },
                  {
                    head: "Policy",
                    cell: (r) => (
                      <>
                        <Theirs className="font-medium">{r.policy}</Theirs>
                        {r.side === "customer" && <span className="text-dim"> of the customer</span>}
                      </>
                    ),
                  },
                  { head: "Install", cell: (r) => <Theirs>{r.install.name}</Theirs> },
                  {
                    head: "Says",
                    wide: true,
                    cell: (r) => (
                      <span className="text-dim" title={r.findings[0]?.message}>
                        {r.findings[0]?.message ?? `${r.counts.pass} passed`}
                      </span>
                    ),
                  },
                  { head: "When", cell: (r) => <Time at={r.judged_at} /> },
                  {
                    head: "",
                    cell: (r) => (
                      <Link to="/changes/$change" params={{ change: r.change_id }} className="text-link underline">
                        Open<span className="sr-only"> the change</span>
                      </Link>
                    ),
                  },
                ]}
              />
            )
          }
        </Answer>
        <More of={reports} />
      </Section>
    </>
  );
}
