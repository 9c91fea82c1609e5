// How an install differs from what was deployed, and who did it.
import { useQuery } from "@tanstack/react-query";
import { useRouteContext, useRouter } from "@tanstack/react-router";
import { ok } from "@berth/client";
import { useState } from "react";
import { type Answer as Got, berth, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { Answer, Empty, Trouble } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Section } from "~/ui/Section";
import { State, type Tone } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { useAct } from "~/ui/useAct";
import { word } from "~/command";
import type { TabProps } from "./Install";
import { Value } from "./Value";
import { Theirs } from "~/ui/Theirs";

type Component = Got<"/installs/{install}/drift">["components"][number];

const looks: Record<Component["state"], { tone: Tone; word: string }> = {
  unknown: { tone: "unknown", word: "nobody looked yet" },
  none: { tone: "good", word: "as deployed" },
  suspected: { tone: "wait", word: "suspected: the next look decides" },
  drifted: { tone: "drift", word: "drifted" },
  failed: { tone: "warn", word: "the last look failed" },
  not_looked_at: { tone: "off", word: "not looked at" },
};

/** Who made a difference, where no manager of the field says so. */
const whos: Record<string, string> = { human_edit: "a person", controller: "a controller", defaulted: "the API server" };

/** A value that comes as JSON, as a person writes it: texts with their lines. */
function textOf(json: string): string {
  if (!json.startsWith('"')) return json;
  try {
    return String(JSON.parse(json)).trimEnd();
  } catch {
    return json;
  }
}

/** How soon the answer to a look is looked for again, and for how long, in milliseconds. */
const again = 3_000;
const patience = 5 * 60_000;

/** When each was looked at last before somebody asked for a look, and how long the page waits for it. */
interface Asked {
  before: ReadonlyMap<string, string | undefined>;
  until: number;
}

/** Whether the answer to a look is still on its way: a component was not looked at since. */
function isAwaited(drift: Got<"/installs/{install}/drift"> | undefined, asked: Asked | undefined): boolean {
  if (!asked || Date.now() > asked.until) return false;
  return drift?.components.some((c) => c.state !== "not_looked_at" && c.looked_at === asked.before.get(c.id)) ?? false;
}

export function Drift({ status }: TabProps) {
  const { install } = status;
  const { me } = useRouteContext({ from: "/inside" });
  const [asked, setAsked] = useState<Asked>();
  const drift = useQuery({
    ...reading("/installs/{install}/drift", { path: { install: install.name } }),
    // A look that finds what the one before found is no event.
    refetchInterval: ({ state }) => isAwaited(state.data, asked) && again,
  });
  const place = { customer: install.customer.id, app: install.app.id, install: install.id };
  const no = whyNot(me.grants, "installs:write", place);
  const noDeploy = whyNot(me.grants, "workflows:write", place);
  const look = useAct(
    (component: string | undefined) =>
      ok(
        berth.POST("/installs/{install}/drift/looks", {
          params: { path: { install: install.name } },
          body: component ? { component } : {},
        }),
      ),
    [["/installs/{install}/drift"]],
  );
  return (
    <Section
      title="Drift"
      side={
        <>
          <Command>{`berth installs drift ${word(install.name)} --now`}</Command>
          <Button
            refused={no}
            disabled={look.isPending}
            onClick={() => {
              setAsked({
                before: new Map(drift.data?.components.map((c) => [c.id, c.looked_at])),
                until: Date.now() + patience,
              });
              look.mutate(undefined);
            }}
          >
            Look now
          </Button>
        </>
      }
    >
      {look.error && <Trouble error={look.error} />}
      {look.data && isAwaited(drift.data, asked) && (
        <p role="status" className="py-2 text-dim">
          The runner was asked to look. What it finds will be here.
        </p>
      )}
      <Answer of={drift}>
        {({ components }) =>
          components.length === 0 ? (
            <Empty>Nothing of this install can drift: no live component is one that the runner looks at.</Empty>
          ) : (
            components.map((c) => <ComponentDrift key={c.id} component={c} status={status} no={noDeploy} />)
          )
        }
      </Answer>
    </Section>
  );
}

function ComponentDrift({ component: c, status, no }: { component: Component; no: string | undefined } & TabProps) {
  const { install } = status;
  const router = useRouter();
  const back = useAct(async () => {
    const made = await ok(
      berth.POST("/installs/{install}/workflows", {
        params: { path: { install: install.name } },
        body: { kind: "deploy", components: [c.name], ...(install.release ? { release: install.release.id } : {}) },
      }),
    );
    await router.navigate({ to: "/workflows/$workflow", params: { workflow: made.id } });
  });
  const { tone, word: says } = looks[c.state];
  return (
    <article className="border-b border-line px-2 py-2">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <Theirs className="min-w-0 font-medium sm:w-44">{c.name}</Theirs>
        <State state={c.state} tone={tone} word={says} />
        <span className="text-dim">
          {c.looked_at && (
            <>
              looked at <Time at={c.looked_at} />
            </>
          )}
          {c.episode && (
            <>
              {" "}
              · {c.episode.class === "human_edit" ? "a person made it" : "nothing explains it"}, since <Time at={c.episode.opened_at} />
            </>
          )}
        </span>
        {c.state === "drifted" && (
          <span className="ml-auto flex items-center gap-2">
            <Command>{`berth installs drift ${word(install.name)} ${word(c.name)} --reconcile`}</Command>
            <Button refused={no} disabled={back.isPending} onClick={() => back.mutate()}>
              Plan to take it back
            </Button>
          </span>
        )}
      </div>
      {c.why && <p className="mt-1 text-dim">{c.why}</p>}
      {back.error && <Trouble error={back.error} />}
      {c.found?.objects?.map((o) => (
        <div key={o.address} className="mt-2">
          <Theirs className="font-mono text-xs font-medium">{o.address}</Theirs>
          <Table
            label={`Differences of ${o.address}`}
            rows={o.differences}
            id={(d) => `${d.path} ${d.what}`}
            columns={[
              { head: "Path", cell: (d) => <Theirs className="font-mono text-xs">{d.path}</Theirs> },
              { head: "Deployed", cell: (d) => d.want !== undefined && <Value>{textOf(d.want)}</Value> },
              { head: "Found", cell: (d) => d.have !== undefined && <Value>{textOf(d.have)}</Value> },
              {
                head: "By",
                cell: (d) => (
                  <span>
                    <Theirs>{d.manager ?? whos[d.class] ?? "nobody knows"}</Theirs>
                    <span className="block text-xs text-dim">{d.accepted ? `accepted: ${d.accepted.reason}` : d.why}</span>
                  </span>
                ),
              },
            ]}
          />
        </div>
      ))}
      {(c.found?.more ?? 0) > 0 && <p className="text-dim">and {c.found?.more} more</p>}
    </article>
  );
}
