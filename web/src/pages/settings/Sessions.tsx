import { usePages } from "~/api/all";
import { type Answer as Got, berth } from "~/api/client";
import { Answer, Trouble } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { useAct } from "~/ui/useAct";
import { Theirs } from "~/ui/Theirs";

type Session = Got<"/browser-sessions">["items"][number];

export function Sessions() {
  const sessions = usePages("/browser-sessions", { query: { limit: 200 } });
  const end = useAct(
    (s: Session) => berth.DELETE("/browser-sessions/{session}", { params: { path: { session: s.id } } }),
    [["/browser-sessions"]],
  );
  return (
    <Section title="Browsers that are logged in" count={sessions.data?.length} side={<Command>berth ui</Command>}>
      {end.error && <Trouble error={end.error} />}
      <Answer of={sessions}>
        {(all) => (
          <Table
            label="Browsers that are logged in"
            rows={all}
            id={(s) => s.id}
            columns={[
              {
                head: "Who",
                cell: (s) => (
                  <span className="font-medium">
                    <Theirs>{s.account.name}</Theirs>
                    {s.current && <span className="ml-2 text-xs text-good">this browser</span>}
                  </span>
                ),
              },
              { head: "Browser", cell: (s) => <span title={s.user_agent}>{browser(s.user_agent)}</span> },
              { head: "Since", cell: (s) => <Time at={s.created_at} /> },
              { head: "Used", cell: (s) => <Time at={s.last_used_at} /> },
              { head: "Ends", cell: (s) => <Time at={s.ends_at} /> },
              {
                head: "",
                number: true,
                cell: (s) => (
                  <Button look="quiet" disabled={end.isPending} onClick={() => end.mutate(s)}>
                    Log out
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Answer>
      <More of={sessions} />
    </Section>
  );
}

/** What a browser calls itself, short; it may lie. */
function browser(agent: string): string {
  const name = /(Firefox|Edg|OPR|Chrome|Safari)\/(\d+)/.exec(agent);
  const system = /(Windows|Mac OS X|Android|iPhone|Linux)/.exec(agent);
  return name
    ? `${name[1] === "Edg" ? "Edge" : name[1] === "OPR" ? "Opera" : name[1]} ${name[2]}${system ? ` on ${system[1]}` : ""}`
    : agent.slice(0, 60);
}
