import { useRouteContext, useSearch, Link } from "@tanstack/react-router";
import { usePages } from "~/api/all";
import { type Answer as Got, berth } from "~/api/client";
import { whyNot } from "~/api/may";
import { Answer, Empty, Trouble } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command, Id } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { useAct } from "~/ui/useAct";
import { Theirs } from "~/ui/Theirs";
import { untilTried } from "./deliveries";

type Webhook = Got<"/webhooks">["items"][number];

export function Webhooks() {
  const { me } = useRouteContext({ from: "/inside" });
  const { webhook } = useSearch({ from: "/inside/settings/$section" });
  const no = whyNot(me.grants, "webhooks:read");
  if (no) return <Empty>{`To see webhooks one ${no}.`}</Empty>;
  return (
    <>
      <List />
      {webhook && <Deliveries webhook={webhook} />}
    </>
  );
}

function List() {
  const { me } = useRouteContext({ from: "/inside" });
  const webhooks = usePages("/webhooks", { query: { limit: 200 } });
  const no = whyNot(me.grants, "webhooks:write");
  const turn = useAct(
    (w: Webhook) => berth.PATCH("/webhooks/{webhook}", { params: { path: { webhook: w.id } }, body: { enabled: w.state !== "enabled" } }),
    [["/webhooks"]],
  );
  const test = useAct(
    (w: Webhook) => berth.POST("/webhooks/{webhook}/test", { params: { path: { webhook: w.id } } }),
    [["/webhooks"], ["/webhooks/{webhook}/deliveries"]],
  );
  return (
    <Section title="Webhooks" side={<Command>berth webhooks create NAME --url URL</Command>}>
      {(turn.error ?? test.error) && <Trouble error={turn.error ?? test.error} />}
      <Answer of={webhooks}>
        {(all) =>
          all.length === 0 ? (
            <Empty action={<Command>berth webhooks create NAME --url URL</Command>}>
              No webhook. One sends what happens here to another system.
            </Empty>
          ) : (
            <Table
              label="Webhooks"
              rows={all}
              id={(w) => w.id}
              columns={[
                {
                  head: "Name",
                  cell: (w) => (
                    <Link
                      to="/settings/$section"
                      params={{ section: "webhooks" }}
                      search={{ webhook: w.id }}
                      className="font-medium hover:underline"
                    >
                      <Name>{w.name}</Name>
                    </Link>
                  ),
                },
                {
                  head: "State",
                  cell: (w) => (
                    <State
                      state={w.state === "enabled" ? (w.failing_since ? "failed" : "live") : "off"}
                      word={w.state === "enabled" && w.failing_since ? "failing" : w.state}
                    />
                  ),
                },
                { head: "To", cell: (w) => <Theirs className="font-mono text-xs">{w.url}</Theirs> },
                { head: "Kinds", wide: true, cell: (w) => w.kinds.join(", ") || "all" },
                { head: "Waiting", number: true, cell: (w) => w.pending },
                { head: "Given up", number: true, cell: (w) => w.dead },
                { head: "Succeeded", wide: true, cell: (w) => w.succeeded_at && <Time at={w.succeeded_at} /> },
                {
                  head: "",
                  number: true,
                  cell: (w) => (
                    <>
                      <Button look="quiet" refused={no} onClick={() => test.mutate(w)}>
                        Send a test
                      </Button>
                      <Button look="quiet" refused={no} onClick={() => turn.mutate(w)}>
                        {w.state === "enabled" ? "Switch off" : "Switch on"}
                      </Button>
                    </>
                  ),
                },
              ]}
            />
          )
        }
      </Answer>
      <More of={webhooks} />
    </Section>
  );
}

function Deliveries({ webhook }: { webhook: string }) {
  const deliveries = usePages("/webhooks/{webhook}/deliveries", { path: { webhook }, query: { limit: 100 } }, (all) =>
    untilTried(all, Date.now()),
  );
  return (
    <Section title="Its deliveries" side={<Command>{`berth webhooks replay ${webhook}`}</Command>}>
      <Answer of={deliveries}>
        {(all) =>
          all.length === 0 ? (
            <Empty>Nothing was sent yet.</Empty>
          ) : (
            <Table
              label="Deliveries"
              rows={all}
              id={(d) => d.id}
              columns={[
                { head: "State", cell: (d) => <State state={d.state} /> },
                { head: "Event", cell: (d) => <span className="font-mono text-xs">{d.kind}</span> },
                { head: "Because of", wide: true, cell: (d) => d.cause },
                { head: "Attempts", number: true, cell: (d) => d.attempts },
                { head: "Answer", number: true, cell: (d) => d.status },
                { head: "Error", cell: (d) => <span title={d.response}>{d.error}</span> },
                { head: "When", cell: (d) => <Time at={d.attempted_at ?? d.created_at} /> },
                { head: "Id", wide: true, cell: (d) => <Id>{d.id}</Id> },
              ]}
            />
          )
        }
      </Answer>
      <More of={deliveries} />
    </Section>
  );
}
