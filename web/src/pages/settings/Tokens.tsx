import { useRouteContext } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { usePages } from "~/api/all";
import { type Answer as Got, berth } from "~/api/client";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { useAct } from "~/ui/useAct";
import { Theirs } from "~/ui/Theirs";
import { late } from "~/late";

const Confirm = late(() => import("~/ui/Confirm"));

type Token = Got<"/tokens">["items"][number];

/** Tokens are made at the command line: a secret that a page showed would be in its memory and on a screen. */
export function Tokens() {
  const { me } = useRouteContext({ from: "/inside" });
  const tokens = usePages("/tokens", { query: { limit: 200 } });
  const revoke = useAct(
    (t: Token) => berth.DELETE("/tokens/{token}", { params: { path: { token: t.id } } }),
    [["/tokens"], ["/browser-sessions"]],
  );
  const [ends, setEnds] = useState<Token>();
  return (
    <Section title="Tokens" side={<Command>berth tokens create NAME</Command>}>
      <Answer of={tokens}>
        {(all) =>
          all.length === 0 ? (
            <Empty>No token. Programs and the command line log in with one.</Empty>
          ) : (
            <Table
              label="Tokens"
              rows={all}
              id={(t) => t.id}
              columns={[
                { head: "Name", cell: (t) => <Theirs className="font-medium">{t.name}</Theirs> },
                { head: "State", cell: (t) => <State {...standing(t)} /> },
                { head: "Of", cell: (t) => t.account.name + (t.account.id === me.account.id ? " (you)" : "") },
                { head: "Begins", cell: (t) => <Theirs className="font-mono text-xs">{`${t.prefix}…`}</Theirs> },
                { head: "Used", cell: (t) => (t.last_used_at ? <Time at={t.last_used_at} /> : <span className="text-dim">never</span>) },
                { head: "Ends", cell: (t) => (t.expires_at ? <Time at={t.expires_at} /> : <span className="text-dim">never</span>) },
                { head: "Made", wide: true, cell: (t) => <Time at={t.created_at} /> },
                {
                  head: "",
                  number: true,
                  cell: (t) => (
                    <Button look="quiet" refused={t.revoked_at ? "it is revoked already" : undefined} onClick={() => setEnds(t)}>
                      Revoke
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </Answer>
      <More of={tokens} />
      <Suspense>
        {ends && (
          <Confirm
            title={`Revoke the token ${ends.name}`}
            verb="Revoke token"
            name={ends.name}
            command={`berth tokens revoke ${ends.id}`}
            act={() => revoke.mutateAsync(ends)}
            onClose={() => setEnds(undefined)}
          >
            It stops working within seconds everywhere, and so do sessions that were opened with it. Tokens that were made with it stay.
          </Confirm>
        )}
      </Suspense>
    </Section>
  );
}

function standing(t: Token): { state: string; word?: string } {
  if (t.revoked_at) return { state: "revoked" };
  if (t.expires_at && Date.parse(t.expires_at) < Date.now()) return { state: "off", word: "expired" };
  return { state: "live", word: "good" };
}
