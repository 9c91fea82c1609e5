// One app: what it is made of, what was built and released, and who runs which release.
import { ok } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useRouteContext, useSearch } from "@tanstack/react-router";
import { type ComponentType, Suspense, useState } from "react";
import { type Answer as Got, berth, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { word } from "~/command";
import { GraphView } from "~/graph/Graph";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command, Id } from "~/ui/Copy";
import { Facts } from "~/ui/Facts";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Tabs } from "~/ui/Tabs";
import { Time } from "~/ui/Time";
import { Builds } from "./Builds";
import { Policies } from "./Policies";
import { Releases } from "./Releases";
import { Variables } from "./Variables";
import { Theirs } from "~/ui/Theirs";
import { written } from "~/diff/visible";
import { own } from "~/own";
import { late } from "~/late";

const Confirm = late(() => import("~/ui/Confirm"));

export interface AppTabProps {
  app: Got<"/apps/{app}">;
}

const tabs: Record<string, { name: string; page: ComponentType<AppTabProps> }> = {
  components: { name: "Components", page: Components },
  releases: { name: "Releases", page: Releases },
  builds: { name: "Builds", page: Builds },
  variables: { name: "Variables", page: Variables },
  policies: { name: "Policies", page: Policies },
};

export function App() {
  const { app: name } = useParams({ from: "/inside/apps/$app" });
  const { tab = "components" } = useSearch({ from: "/inside/apps/$app" });
  const app = useQuery(reading("/apps/{app}", { path: { app: name } }));
  const Page = own(tabs, tab)?.page;
  return (
    <>
      <title>{written(`${name} · Berth`)}</title>
      <Answer of={app}>
        {(found) => (
          <>
            <Head app={found} />
            <Tabs
              label={`Parts of ${name}`}
              tabs={Object.entries(tabs).map(([key, { name: called }]) => [key, called] as const)}
              at={tab}
            />
            {Page ? <Page app={found} /> : <Empty>There is no such part of an app.</Empty>}
          </>
        )}
      </Answer>
    </>
  );
}

function Head({ app }: AppTabProps) {
  const { me } = useRouteContext({ from: "/inside" });
  const navigate = useNavigate();
  const noBuild = whyNot(me.grants, "apps:write");
  const noRelease = whyNot(me.grants, "apps:write", { app: app.id });
  const unsynced = app.config ? undefined : "no folder was synced yet";
  const [asks, setAsks] = useState<"build" | "release">();
  const to = (tab: string) => navigate({ to: "/apps/$app", params: { app: app.name }, search: { tab } });
  return (
    <header className="mb-4">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1 className="min-w-0 text-xl font-semibold">
          <Name>{app.display_name || app.name}</Name>
        </h1>
        {app.release ? (
          <span className="text-dim">newest release r{app.release.number}</span>
        ) : (
          <State state="absent" word="no release yet" />
        )}
        {app.config && <span className="text-dim">config {app.config.number}</span>}
        <div className="ml-auto flex gap-2">
          <Button refused={noBuild ?? unsynced} onClick={() => setAsks("build")}>
            Build again…
          </Button>
          <Button refused={noRelease ?? unsynced} onClick={() => setAsks("release")}>
            Release…
          </Button>
        </div>
      </div>
      {app.description && (
        <p className="mt-1.5 text-dim">
          <Theirs>{app.description}</Theirs>
        </p>
      )}
      <Suspense>
        {asks === "build" && (
          <Confirm
            title={`Build ${app.name} again`}
            verb="Build all components"
            command={`berth builds create ${word(app.name)}`}
            act={async () => {
              await ok(berth.POST("/builds", { body: { app: app.id } }));
              await to("builds");
            }}
            onClose={() => setAsks(undefined)}
          >
            All components of config {app.config?.number} are built again; one whose sources did not change is reused. When all succeed and
            something is new, there is a new release.
          </Confirm>
        )}
        {asks === "release" && (
          <Confirm
            title={`Release ${app.name}`}
            verb={`Release config ${app.config?.number}`}
            command={`berth releases create ${word(app.name)} --config ${app.config?.number}`}
            act={async () => {
              await ok(berth.POST("/apps/{app}/releases", { params: { path: { app: app.id } }, body: { config: app.config!.number } }));
              await to("releases");
            }}
            onClose={() => setAsks(undefined)}
          >
            A release of the newest config with its own builds, which must have succeeded. When it is there already, nothing is made.
            Nothing is deployed.
          </Confirm>
        )}
      </Suspense>
    </header>
  );
}

function Components({ app }: AppTabProps) {
  const search = useSearch({ from: "/inside/apps/$app" });
  const navigate = useNavigate({ from: "/apps/$app" });
  const config = app.config?.id ?? "";
  const graph = useQuery({ ...reading("/configs/{config}/graph", { path: { config } }), enabled: config !== "" });
  const known = useQuery({ ...reading("/configs/{config}", { path: { config } }), enabled: config !== "" });
  if (!config)
    return (
      <Empty action={<Command>{`berth sync FOLDER`}</Command>}>
        No folder was synced yet. Its components, and which needs which, will be here.
      </Empty>
    );
  const items = new Map(known.data?.items?.map((i) => [i.component, i]));
  return (
    <>
      <Section title="Components" side={<Command>{`berth configs graph ${word(app.name)}@${app.config?.number}`}</Command>}>
        <div className="pt-2">
          <Answer of={graph} lines={6}>
            {(g) => (
              <GraphView
                graph={g}
                label={`Components of ${app.name}`}
                look={(node) => {
                  const item = items.get(node.name);
                  if (!item) return { tone: "planned", word: node.type };
                  const looks = { queued: "wait", running: "busy", succeeded: "good", failed: "bad", cancelled: "off" } as const;
                  return {
                    tone: looks[item.build_state],
                    word: item.build_state === "succeeded" ? node.type : `build ${item.build_state}`,
                  };
                }}
                chosen={search.component}
                onChoose={(component) => void navigate({ search: { ...search, component }, replace: true, resetScroll: false })}
                detail={(node) => {
                  const item = items.get(node.name);
                  return (
                    item && (
                      <Facts
                        of={[
                          ["Type", item.type],
                          ["Build", <State key="b" state={item.build_state} />],
                          ["Error", item.build_error && <span className="text-bad">{item.build_error}</span>],
                          [
                            "Source",
                            item.source &&
                              [item.source.kind, item.source.repo, item.source.ref, item.source.directory].filter(Boolean).join(" · "),
                          ],
                          ["Commit", item.source?.commit && <Id>{item.source.commit}</Id>],
                        ]}
                      />
                    )
                  );
                }}
              />
            )}
          </Answer>
        </div>
      </Section>
      <Answer of={known} lines={2}>
        {(c) => (
          <Section title={`Config ${c.number}`} side={<State state={c.state} />}>
            <Facts
              of={[
                ["Synced by", <Theirs key="b">{c.created_by}</Theirs>],
                ["When", <Time key="t" at={c.created_at} />],
                ["Inputs", c.inputs && c.inputs.length > 0 && c.inputs.map((i) => i.name).join(", ")],
                ["Actions", c.actions && c.actions.length > 0 && c.actions.join(", ")],
                ["Digest", <Id key="d">{c.digest}</Id>],
              ]}
            />
          </Section>
        )}
      </Answer>
    </>
  );
}
