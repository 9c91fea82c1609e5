// What is shipped, and how far it got.
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { usePages } from "~/api/all";
import { type Answer as Got, berth } from "~/api/client";
import { Answer, Empty } from "~/ui/Answer";
import { Command } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Name } from "~/ui/Name";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { spread, type Spread } from "./spread";
import { Theirs } from "~/ui/Theirs";

type App = Got<"/apps">["items"][number];

export function Apps() {
  const apps = usePages("/apps", { query: { limit: 100 } });
  const spreads = useSpreads().data;
  return (
    <>
      <title>Apps · Berth</title>
      <h1 className="sr-only">Apps</h1>
      <Answer of={apps}>
        {(items) =>
          items.length === 0 ? (
            <Empty action={<Command>berth sync FOLDER</Command>}>
              No app yet. Sync an app folder, and it will be here with its releases.
            </Empty>
          ) : (
            <Table<App>
              label="Apps"
              rows={items}
              id={(a) => a.id}
              columns={[
                {
                  head: "App",
                  cell: (a) => (
                    <Link to="/apps/$app" params={{ app: a.name }} className="font-medium hover:underline">
                      <Name>{a.display_name || a.name}</Name>
                    </Link>
                  ),
                },
                { head: "Newest release", cell: (a) => (a.release ? `r${a.release.number}` : <State state="absent" word="none yet" />) },
                { head: "Installs", number: true, cell: (a) => spreads?.get(a.name)?.all ?? "—" },
                {
                  head: "On the newest",
                  cell: (a) => {
                    const s = spreads?.get(a.name);
                    if (!s) return "—";
                    return (
                      <Link to="/installs" search={{ q: `app:${a.name}` }} className="hover:underline">
                        {s.newest} of {s.all}
                        {s.unhealthy > 0 && <span className="ml-2 text-bad">{s.unhealthy} unhealthy</span>}
                      </Link>
                    );
                  },
                },
                { head: "What it is", wide: true, cell: (a) => <Theirs className="text-dim">{a.description}</Theirs> },
                { head: "Made", wide: true, cell: (a) => <Time at={a.created_at} /> },
              ]}
            />
          )
        }
      </Answer>
      <More of={apps} />
    </>
  );
}

/** On which releases the installs of each app are, or of one. */
export function useSpreads(app?: string): UseQueryResult<ReadonlyMap<string, Spread>> {
  return useQuery({
    queryKey: ["/status", { query: { app, all: true } }],
    queryFn: async ({ signal }) => {
      const found: Got<"/status">["items"] = [];
      for await (const status of berth.list("/status", { query: app === undefined ? {} : { app }, signal })) found.push(status);
      return spread(found);
    },
  });
}
