import { usePages } from "~/api/all";
import type { Answer as Got } from "~/api/client";
import { word } from "~/command";
import { Answer, Empty } from "~/ui/Answer";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import type { AppTabProps } from "./App";
import { Theirs } from "~/ui/Theirs";

type Variable = Got<"/apps/{app}/variables">["items"][number];

/** Names of variables, and what reads them: lists have no value. */
export function Variables({ app }: AppTabProps) {
  const variables = usePages("/apps/{app}/variables", { path: { app: app.name }, query: { limit: 100 } });
  return (
    <Section title="Variables" side={<Command>{`berth apps variables list ${word(app.name)}`}</Command>}>
      <Answer of={variables}>
        {(items) =>
          items.length === 0 ? (
            <Empty action={<Command>{`berth apps variables set ${word(app.name)} NAME`}</Command>}>
              No variable yet. What all installs of the app share will be here.
            </Empty>
          ) : (
            <Table<Variable>
              label="Variables"
              rows={items}
              id={(v) => v.name}
              columns={[
                { head: "Name", cell: (v) => <Theirs className="font-medium">{v.name}</Theirs> },
                { head: "Value", cell: (v) => <span className="text-dim">{v.sensitive ? "sensitive" : "not shown in lists"}</span> },
                {
                  head: "Read by",
                  cell: (v) =>
                    v.read_by.length === 0 ? (
                      <span className="text-dim">nothing</span>
                    ) : (
                      v.read_by.map((r) => (r.kind === "sandbox" ? "the sandbox" : r.name)).join(", ")
                    ),
                },
                { head: "Set by", wide: true, cell: (v) => <Theirs>{v.updated_by}</Theirs> },
                { head: "When", cell: (v) => <Time at={v.updated_at} /> },
              ]}
            />
          )
        }
      </Answer>
      <More of={variables} />
    </Section>
  );
}
