import { useQuery } from "@tanstack/react-query";
import { type Answer as Got, reading } from "~/api/client";
import { Answer, Empty } from "~/ui/Answer";
import { Command } from "~/ui/Copy";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { word } from "~/command";
import type { TabProps } from "./Install";
import { Theirs } from "~/ui/Theirs";

type Secret = Got<"/installs/{install}/secrets">["items"][number];

/** What is known of the customer's secrets: never a value. */
export function Secrets({ status }: TabProps) {
  const { name } = status.install;
  const secrets = useQuery(reading("/installs/{install}/secrets", { path: { install: name } }));
  return (
    <Section title="Secrets" side={<Command>{`berth installs secrets ${word(name)}`}</Command>}>
      <p className="py-2 text-dim">The values stay with the customer: nobody here has them.</p>
      <Answer of={secrets}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>The app asks for no secrets.</Empty>
          ) : (
            <Table<Secret>
              label="Secrets"
              rows={items}
              id={(s) => s.name}
              columns={[
                {
                  head: "Name",
                  cell: (s) => (
                    <Theirs className="font-medium" title={s.description}>
                      {s.name}
                    </Theirs>
                  ),
                },
                {
                  head: "State",
                  cell: (s) =>
                    s.set ? (
                      <State state="applied" word={s.set_by === "runner" ? "made by the runner" : "set"} />
                    ) : s.needed ? (
                      <State state="waiting" word="the customer has to set it" />
                    ) : (
                      <State state="absent" word="not set" />
                    ),
                },
                { head: "Version", number: true, cell: (s) => s.version || "—" },
                { head: "Set", cell: (s) => (s.set_at ? <Time at={s.set_at} /> : "—") },
                {
                  head: "Used by",
                  wide: true,
                  cell: (s) =>
                    s.used_by.map((u, i) => (
                      <span key={u.name}>
                        {i > 0 && ", "}
                        <Theirs>{u.name}</Theirs>
                        {u.behind && <span className="text-warn"> with version {u.version}</span>}
                      </span>
                    )),
                },
              ]}
            />
          )
        }
      </Answer>
    </Section>
  );
}
