// Releases: why each was made, what differs between two, and which installs are on which.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { usePages } from "~/api/all";
import { type Answer as Got, reading } from "~/api/client";
import { word } from "~/command";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command, Id } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { State, type Tone } from "~/ui/State";
import { Time } from "~/ui/Time";
import type { AppTabProps } from "./App";
import { useSpreads } from "./Apps";
import { Theirs } from "~/ui/Theirs";

type Release = Got<"/apps/{app}/releases">["items"][number];
type Difference = Got<"/releases/{release}/diff">["changes"][number];

export function Releases({ app }: AppTabProps) {
  const releases = usePages("/apps/{app}/releases", { path: { app: app.name }, query: { limit: 50 } });
  const search = useSearch({ from: "/inside/apps/$app" });
  const on = useSpreads(app.name).data?.get(app.name);
  return (
    <>
      {search.from && search.to && <Comparison app={app.name} from={search.from} to={search.to} />}
      <Section title="Releases" side={<Command>{`berth releases list ${word(app.name)}`}</Command>}>
        <Answer of={releases}>
          {(items) =>
            items.length === 0 ? (
              <Empty>No release yet. When all builds of a config have succeeded, there is one.</Empty>
            ) : (
              <ol>
                {items.map((r, i) => (
                  <Line
                    key={r.id}
                    release={r}
                    before={items[i + 1]}
                    installs={on?.releases.find((o) => o.number === r.number)?.installs ?? []}
                  />
                ))}
              </ol>
            )
          }
        </Answer>
        <More of={releases} />
      </Section>
    </>
  );
}

/** How a release came to be. */
export const made: Record<Release["made_by"], string> = { sync: "synced", rebuild: "built again", promotion: "chosen builds" };

function Line({ release: r, before, installs }: { release: Release; before: Release | undefined; installs: readonly string[] }) {
  const shown = installs.slice(0, 6);
  return (
    <li className="grid grid-cols-[3rem_1fr] items-start gap-x-4 gap-y-1 border-b border-line px-2 py-2.5 hover:bg-hover sm:grid-cols-[3rem_3fr_2fr_5.5rem_8rem]">
      <Link
        to="/apps/$app/releases/$number"
        params={{ app: r.app.name, number: String(r.number) }}
        className="font-semibold tabular-nums hover:underline"
      >
        r{r.number}
      </Link>
      <span className="min-w-0">
        <span className="block font-medium break-words">
          {r.origin?.message?.split("\n")[0] ?? <span className="text-dim">{made[r.made_by]}, no note</span>}
        </span>
        <span className="flex flex-wrap gap-x-3 text-dim">
          <span>
            {made[r.made_by]} by <Theirs>{r.synced_by}</Theirs>
          </span>
          {r.origin?.author && <span>{r.origin.author}</span>}
          {r.origin?.commit && <Id keep={8}>{r.origin.commit}</Id>}
          {r.origin?.modified && <span className="text-warn">with changes in no commit</span>}
          {r.revoked ? <State state="revoked" tone="bad" /> : r.signed && <span>signed</span>}
        </span>
      </span>
      <span className="col-start-2 min-w-0 text-dim sm:col-start-auto">
        {installs.length === 0 ? (
          "no install on it"
        ) : (
          <>
            {shown.map((name, i) => (
              <span key={name}>
                {i > 0 && ", "}
                <Link to="/installs/$install" params={{ install: name }} className="text-ink hover:underline">
                  <Name>{name}</Name>
                </Link>
              </span>
            ))}
            {installs.length > shown.length && (
              <Link to="/installs" search={{ q: `app:${r.app.name} release:r${r.number}` }} className="text-link underline">
                {" "}
                and {installs.length - shown.length} more
              </Link>
            )}
          </>
        )}
      </span>
      <span className="col-start-2 text-xs text-dim sm:col-start-auto">
        <Time at={r.created_at} />
      </span>
      <span className="col-start-2 sm:col-start-auto sm:text-right">
        {before && (
          <Link
            to="/apps/$app"
            params={{ app: r.app.name }}
            search={{ tab: "releases", from: String(before.number), to: String(r.number) }}
            className="text-link underline"
          >
            What changed
          </Link>
        )}
      </span>
    </li>
  );
}

const looks: Record<Difference["change"], { tone: Tone; word: string }> = {
  added: { tone: "good", word: "added" },
  removed: { tone: "bad", word: "removed" },
  changed: { tone: "drift", word: "changed" },
};

function Comparison({ app, from, to }: { app: string; from: string; to: string }) {
  const navigate = useNavigate({ from: "/apps/$app" });
  const diff = useQuery(reading("/releases/{release}/diff", { path: { release: `${app}@${from}` }, query: { to: `${app}@${to}` } }));
  return (
    <Section
      title={`From r${from} to r${to}`}
      side={
        <>
          <span className="hidden sm:block">
            <Command>{`berth releases diff ${word(app)}@${from} ${to}`}</Command>
          </span>
          <Button onClick={() => void navigate({ search: { tab: "releases" }, resetScroll: false })}>Close</Button>
        </>
      }
    >
      <Answer of={diff}>
        {({ changes }) =>
          changes.length === 0 ? (
            <p className="py-3 text-dim">Nothing differs: the same artifacts of the same config.</p>
          ) : (
            <ul>
              {changes.map((c) => (
                <li key={`${c.kind} ${c.name}`} className="border-b border-line px-2 py-2">
                  <span className="flex flex-wrap items-center gap-x-3">
                    <State state={c.change} tone={looks[c.change].tone} word={looks[c.change].word} />
                    <span className="text-dim">{c.kind.replaceAll("_", " ")}</span>
                    <Theirs className="font-medium">{c.name}</Theirs>
                    {c.build && <span className="text-dim">built from something else</span>}
                    {c.deploy && !c.build && <span className="text-dim">deployed with other settings</span>}
                  </span>
                  {c.fields.map((f) => (
                    <p key={f.path} className="mt-1 grid gap-x-3 font-mono text-xs sm:grid-cols-[14rem_1fr]">
                      <Theirs className="truncate text-dim" title={f.path}>
                        {f.path}
                      </Theirs>
                      <span className="min-w-0 break-all">
                        {f.before !== undefined && (
                          <del className="block bg-bad-ground px-1 text-bad no-underline">
                            <span aria-hidden="true">− </span>
                            {f.before}
                          </del>
                        )}
                        {f.after !== undefined && (
                          <ins className="block bg-good-ground px-1 text-good no-underline">
                            <span aria-hidden="true">+ </span>
                            {f.after}
                          </ins>
                        )}
                      </span>
                    </p>
                  ))}
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </Section>
  );
}
