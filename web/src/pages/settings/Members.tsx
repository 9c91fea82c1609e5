import { useRouteContext } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { usePages } from "~/api/all";
import { type Answer as Got, berth } from "~/api/client";
import { whyNot } from "~/api/may";
import { Answer } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { More } from "~/ui/More";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { useAct } from "~/ui/useAct";
import { late } from "~/late";

const Confirm = late(() => import("~/ui/Confirm"));
const NewMember = late(() => import("./NewMember"));

type Member = Got<"/members">["items"][number];

export function Members() {
  const { me } = useRouteContext({ from: "/inside" });
  const members = usePages("/members", { query: { limit: 200 } });
  const remove = useAct((m: Member) => berth.DELETE("/members/{member}", { params: { path: { member: m.id } } }), [["/members"]]);
  const [leaves, setLeaves] = useState<Member>();
  const [adds, setAdds] = useState(false);
  const no = whyNot(me.grants, "members:write");
  return (
    <Section
      title="Members"
      count={members.data?.length}
      side={
        <Button refused={no} onClick={() => setAdds(true)}>
          New member…
        </Button>
      }
    >
      <Answer of={members}>
        {(all) => (
          <Table
            label="Members"
            rows={all}
            id={(m) => m.id}
            columns={[
              {
                head: "Name",
                cell: (m) => (
                  <span className="font-medium">
                    <Name>{m.name}</Name>
                    {m.id === me.account.id && <span className="ml-2 text-xs text-dim">you</span>}
                    {m.disabled_at && <span className="ml-2 text-xs text-dim">removed</span>}
                  </span>
                ),
              },
              { head: "Roles", cell: (m) => m.grants.map(reach).join(", ") },
              { head: "Kind", wide: true, cell: (m) => (m.kind === "user" ? "a person" : "a machine") },
              { head: "Email", wide: true, cell: (m) => m.email },
              { head: "Since", cell: (m) => <Time at={m.created_at} /> },
              {
                head: "",
                number: true,
                cell: (m) => (
                  <Button
                    look="quiet"
                    refused={
                      no ?? (m.disabled_at ? "it is removed already" : m.id === me.account.id ? "nobody removes themselves" : undefined)
                    }
                    onClick={() => setLeaves(m)}
                  >
                    Remove
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Answer>
      <More of={members} />
      <Suspense>
        {adds && <NewMember onClose={() => setAdds(false)} />}
        {leaves && (
          <Confirm
            title={`Remove ${leaves.name}`}
            verb="Remove member"
            name={leaves.name}
            command={`berth members remove ${leaves.name}`}
            act={() => remove.mutateAsync(leaves)}
            onClose={() => setLeaves(undefined)}
          >
            The account is disabled, its tokens and sessions end. What it did stays on record.
          </Confirm>
        )}
      </Suspense>
    </Section>
  );
}

function reach(g: Member["grants"][number]): string {
  const within = g.customer_id ?? g.app_id ?? g.install_id;
  return within ? `${g.role} within ${within}` : g.role;
}
