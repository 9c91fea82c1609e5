import { useQuery } from "@tanstack/react-query";
import { type Answer as Got, reading } from "~/api/client";
import { Answer, Empty } from "~/ui/Answer";
import { Command } from "~/ui/Copy";
import { Section } from "~/ui/Section";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { word } from "~/command";
import type { TabProps } from "./Install";
import { Value } from "./Value";
import { Theirs } from "~/ui/Theirs";

type Input = Got<"/installs/{install}/inputs">["items"][number];

const sources: Record<Input["from"], string> = { set: "set for this install", default: "default of the app", none: "not set" };

/** What this install is told, and where each value comes from. */
export function Inputs({ status }: TabProps) {
  const { name } = status.install;
  const inputs = useQuery(reading("/installs/{install}/inputs", { path: { install: name } }));
  return (
    <Section title="Inputs" side={<Command>{`berth installs inputs ${word(name)} --set NAME=VALUE`}</Command>}>
      <Answer of={inputs}>
        {({ items, version, created_by, created_at }) => (
          <>
            {items.length === 0 ? (
              <Empty>The app has no inputs.</Empty>
            ) : (
              <Table<Input>
                label="Inputs"
                rows={items}
                id={(i) => i.name}
                columns={[
                  {
                    head: "Name",
                    cell: (i) => (
                      <>
                        <Theirs className="font-medium">{i.name}</Theirs>
                        {i.required && <span className="text-dim"> required</span>}
                      </>
                    ),
                  },
                  {
                    head: "Value",
                    cell: (i) =>
                      i.sensitive ? (
                        i.from === "none" ? (
                          <None />
                        ) : (
                          <span title="sensitive">••••••</span>
                        )
                      ) : i.value === undefined ? (
                        <None />
                      ) : (
                        <Value>{i.value}</Value>
                      ),
                  },
                  {
                    head: "Type",
                    cell: (i) => (
                      <span className="text-dim">
                        {i.type}
                        {i.sensitive && ", sensitive"}
                      </span>
                    ),
                  },
                  { head: "From", cell: (i) => <span className="text-dim">{sources[i.from]}</span> },
                ]}
              />
            )}
            {version > 0 && (
              <p className="mt-2 text-dim">
                Version {version}
                {created_by && (
                  <>
                    , set by <Theirs>{created_by}</Theirs>
                  </>
                )}
                {created_at && (
                  <>
                    {" "}
                    <Time at={created_at} />
                  </>
                )}
                {status.pending.includes("inputs") && ". Not deployed yet: the next deploy brings it."}
              </p>
            )}
          </>
        )}
      </Answer>
    </Section>
  );
}

const None = () => <span className="text-dim">—</span>;
