import { Link } from "@tanstack/react-router";
import { usePages } from "~/api/all";
import { type Answer as Got, berth } from "~/api/client";
import { Answer, Empty, Trouble } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { wordOf } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { useAct } from "~/ui/useAct";

type Mute = Got<"/alert-mutes">["items"][number];

export function Mutes() {
  const mutes = usePages("/alert-mutes", { query: { limit: 200 } });
  const lift = useAct((m: Mute) => berth.DELETE("/alert-mutes/{mute}", { params: { path: { mute: m.id } } }), [["/alert-mutes"]]);
  return (
    <Section title="Muted alerts" side={<Command>berth alerts mute --install INSTALL --for 2h --reason WHY</Command>}>
      {lift.error && <Trouble error={lift.error} />}
      <Answer of={mutes}>
        {(all) =>
          all.length === 0 ? (
            <Empty>Nothing is muted: all alerts are sent.</Empty>
          ) : (
            <Table
              label="Muted alerts"
              rows={all}
              id={(m) => m.id}
              columns={[
                {
                  head: "Where",
                  cell: (m) =>
                    m.install ? (
                      <Link to="/installs/$install" params={{ install: m.install.name }} className="hover:underline">
                        {m.install.name}
                      </Link>
                    ) : (
                      "all installs"
                    ),
                },
                { head: "What", cell: (m) => [m.kind && wordOf(m.kind), m.subject].filter(Boolean).join(" · ") || "everything" },
                { head: "Why", cell: (m) => m.reason },
                { head: "By", cell: (m) => m.created_by },
                { head: "Until", cell: (m) => <Time at={m.until} /> },
                {
                  head: "",
                  number: true,
                  cell: (m) => (
                    <Button look="quiet" refused={m.removed_at ? "it is over" : undefined} onClick={() => lift.mutate(m)}>
                      End
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </Answer>
      <More of={mutes} />
    </Section>
  );
}
