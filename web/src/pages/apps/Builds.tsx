import { usePages } from "~/api/all";
import type { Answer as Got } from "~/api/client";
import { word } from "~/command";
import { LogLinks } from "~/frame/AtSide";
import { Answer, Empty } from "~/ui/Answer";
import { Command, Id } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time, Took } from "~/ui/Time";
import type { AppTabProps } from "./App";
import { Theirs } from "~/ui/Theirs";

type Build = Got<"/builds">["items"][number];

export function Builds({ app }: AppTabProps) {
  const builds = usePages("/builds", { query: { app: app.name, limit: 50 } });
  return (
    <Section title="Builds" side={<Command>{`berth builds list --app ${word(app.name)}`}</Command>}>
      <Answer of={builds}>
        {(items) =>
          items.length === 0 ? (
            <Empty>Nothing was built yet. A sync builds what changed.</Empty>
          ) : (
            <Table<Build>
              label="Builds"
              rows={items}
              id={(b) => b.id}
              columns={[
                { head: "State", cell: (b) => <State state={b.state} /> },
                { head: "Component", cell: (b) => <Theirs className="font-medium">{b.component.name}</Theirs> },
                { head: "Why", cell: (b) => <span className="text-dim">{b.reused_from ? "reused: nothing changed" : b.reason}</span> },
                { head: "By", wide: true, cell: (b) => <Theirs>{b.requested_by}</Theirs> },
                { head: "When", cell: (b) => <Time at={b.created_at} /> },
                { head: "Took", number: true, wide: true, cell: (b) => b.started_at && <Took from={b.started_at} to={b.finished_at} /> },
                { head: "Artifact", wide: true, cell: (b) => b.artifact && <Id>{b.artifact.digest}</Id> },
                {
                  head: "Says",
                  cell: (b) => (
                    <span className="text-bad" title={b.error}>
                      {b.error ?? <span className="text-dim">{b.wait?.reason}</span>}
                    </span>
                  ),
                },
                { head: "", cell: (b) => <Log streams={b.job?.stream_ids ?? []} /> },
              ]}
            />
          )
        }
      </Answer>
      <More of={builds} />
    </Section>
  );
}

function Log({ streams }: { streams: readonly string[] }) {
  const last = streams.at(-1);
  if (!last) return null;
  return <LogLinks stream={last} />;
}
