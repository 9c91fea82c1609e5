// One install: how it is, why, what happened, and what can be done.
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation, useNavigate, useParams, useRouteContext, useRouter, useSearch } from "@tanstack/react-router";
import { type ComponentType, Suspense } from "react";
import { berth, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { Answer, Empty, Skeleton } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Name } from "~/ui/Name";
import { State, toneOf, wordOf } from "~/ui/State";
import { Tabs } from "~/ui/Tabs";
import { Time } from "~/ui/Time";
import { useAct } from "~/ui/useAct";
import { Actions } from "./Actions";
import { Checks } from "./Checks";
import { word } from "~/command";
import { Drift } from "./Drift";
import { Inputs } from "./Inputs";
import { Overview } from "./Overview";
import { Readme } from "./Readme";
import { type InstallStatus, rowOf } from "./rows";
import { Secrets } from "./Secrets";
import { Timeline } from "./Timeline";
import { Theirs } from "~/ui/Theirs";
import { written } from "~/diff/visible";
import { own } from "~/own";
import { late } from "~/late";

const Deploy = late(() => import("./Deploy"));
const Rollback = late(() => import("./Rollback"));
const Pause = late(() => import("./Pause"));

export interface TabProps {
  status: InstallStatus;
}

const tabs: Record<string, { name: string; page: ComponentType<TabProps> }> = {
  overview: { name: "Overview", page: Overview },
  timeline: { name: "Timeline", page: Timeline },
  readme: { name: "Readme", page: Readme },
  inputs: { name: "Inputs", page: Inputs },
  actions: { name: "Actions", page: Actions },
  checks: { name: "Checks", page: Checks },
  drift: { name: "Drift", page: Drift },
  secrets: { name: "Secrets", page: Secrets },
};

export function Install() {
  const { install } = useParams({ from: "/inside/installs/$install" });
  const { tab = "overview" } = useSearch({ from: "/inside/installs/$install" });
  const status = useQuery(reading("/installs/{install}/status", { path: { install } }));
  const Page = own(tabs, tab)?.page;
  return (
    <>
      <title>{written(`${install} · Berth`)}</title>
      <Answer of={status}>
        {(found) => (
          <>
            <Head status={found} />
            <Tabs label={`Parts of ${install}`} tabs={Object.entries(tabs).map(([key, { name }]) => [key, name] as const)} at={tab} />
            <Suspense fallback={<Skeleton lines={5} />}>
              {Page ? <Page status={found} /> : <Empty>There is no such part of an install.</Empty>}
            </Suspense>
          </>
        )}
      </Answer>
    </>
  );
}

/** That the last deploy failed, and where. */
function LastFailed({ last }: { last: NonNullable<InstallStatus["last"]> }) {
  return (
    <p className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 border-l-2 border-bad pl-3">
      <Link to="/workflows/$workflow" params={{ workflow: last.id }} className="inline-flex items-center gap-2 text-link underline">
        <State state="failed" word={`${wordOf(last.kind)} ${last.ended === "denied" ? "denied" : "failed"}`} />
      </Link>
      <span className="text-dim">
        {last.step && (
          <>
            at <Theirs>{last.step}</Theirs>
          </>
        )}
        {last.release && ` of r${last.release.number}`}
        {last.finished_at && (
          <>
            , <Time at={last.finished_at} />
          </>
        )}
      </span>
    </p>
  );
}

function Head({ status }: { status: InstallStatus }) {
  const { install, standing, newest_release: newest, runner } = status;
  const { me } = useRouteContext({ from: "/inside" });
  const at = { customer: install.customer.id, app: install.app.id, install: install.id };
  const noWorkflow = whyNot(me.grants, "workflows:write", at);
  const noPause = whyNot(me.grants, "installs:write", at);
  // What is asked stands in the URL, for the search and for links.
  const search = useSearch({ from: "/inside/installs/$install" });
  const navigate = useNavigate({ from: "/installs/$install" });
  const router = useRouter();
  const page = useLocation({ select: (l) => l.pathname });
  const setAsks = (next?: "deploy" | "rollback" | "pause") => {
    // What was asked for may have led elsewhere.
    if (router.latestLocation.pathname !== page) return;
    void navigate({ search: { ...search, do: next }, replace: true, resetScroll: false });
  };
  const mayAsk = { deploy: !noWorkflow, rollback: !noWorkflow && install.release !== undefined, pause: !noPause && !install.pause };
  const asks = search.do !== undefined && mayAsk[search.do as keyof typeof mayAsk] ? search.do : undefined;
  const resume = useAct(
    () => berth.POST("/installs/{install}/resume", { params: { path: { install: install.id } } }),
    [["/installs/{install}/status"]],
  );
  const { behind } = rowOf(status);
  return (
    <header className="mb-4">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1 className="min-w-0 text-xl font-semibold">
          <Name>{install.name}</Name>
        </h1>
        {standing === "live" ? <State state={install.health} /> : <State state={standing} />}
        {standing !== "live" && install.health !== "unknown" && <State state={install.health} />}
        {install.drifted > 0 && <State state="drifted" word={`${install.drifted} drifted`} />}
        {install.pause && <State state="paused" />}
        <div className="ml-auto flex flex-wrap items-center gap-2">
          <Button look="main" refused={noWorkflow} onClick={() => setAsks("deploy")}>
            Deploy…
          </Button>
          <Button refused={noWorkflow ?? (install.release ? undefined : "it was never deployed")} onClick={() => setAsks("rollback")}>
            Roll back…
          </Button>
          {install.pause ? (
            <Button
              refused={noPause}
              disabled={resume.isPending}
              onClick={() => resume.mutate()}
              title={`berth installs resume ${word(install.name)}`}
            >
              Resume
            </Button>
          ) : (
            <Button refused={noPause} onClick={() => setAsks("pause")}>
              Pause…
            </Button>
          )}
        </div>
      </div>
      <p className="mt-1.5 flex flex-wrap gap-x-4 gap-y-1 text-dim">
        <span>
          <Link to="/apps/$app" params={{ app: install.app.name }} className="text-ink hover:underline">
            <Name>{install.app.name}</Name>
          </Link>{" "}
          {install.release ? `r${install.release.number}` : "no release yet"}
          {behind > 0 ? (
            <span className="text-warn">
              {" "}
              ↑{behind} behind r{newest?.number}
            </span>
          ) : install.release && newest ? (
            " (newest)"
          ) : (
            ""
          )}
        </span>
        <span className="min-w-0 wrap-anywhere">
          for <Theirs className="text-ink">{install.customer.name}</Theirs>
        </span>
        <span className="inline-flex items-center gap-1.5">
          runner
          {runner ? (
            <Link to="/runners/$runner" params={{ runner: runner.id }} className="inline-flex items-center gap-1.5 hover:underline">
              <State state={runner.online ? "online" : "offline"} />
              {runner.last_seen_at && !runner.online && (
                <span>
                  seen <Time at={runner.last_seen_at} />
                </span>
              )}
            </Link>
          ) : (
            <State state="absent" word="not enrolled yet" />
          )}
        </span>
        {runner && (
          <span className="inline-flex items-center gap-1.5" title={runner.switch_reason}>
            switch
            <State state={runner.switch} tone={runner.switch === "run" ? "good" : "off"} />
          </span>
        )}
        {Object.entries(install.labels).map(([k, v]) => (
          <Link
            key={k}
            to="/installs"
            search={{ q: `label:${k}=${v}` }}
            className="min-w-0 font-mono text-xs wrap-anywhere hover:text-ink hover:underline"
          >
            <Theirs>{`${k}=${v}`}</Theirs>
          </Link>
        ))}
      </p>
      {install.pause && (
        <p className="mt-2 flex flex-wrap items-center gap-x-3 border-l-2 border-line-strong pl-3">
          <span className="min-w-0 wrap-anywhere">
            Paused by <Theirs className="font-medium">{install.pause.by}</Theirs> <Time at={install.pause.at} />:{" "}
            <Theirs>{install.pause.reason}</Theirs>
          </span>
          <Command>{`berth installs resume ${word(install.name)}`}</Command>
        </p>
      )}
      {runner?.problem && <p className="mt-2 border-l-2 border-warn pl-3">{runner.problem}</p>}
      {status.workflow && (
        <p className="mt-2 flex flex-wrap items-center gap-x-3 border-l-2 border-busy pl-3">
          <Link
            to="/workflows/$workflow"
            params={{ workflow: status.workflow.id }}
            className="inline-flex items-center gap-2 text-link underline"
          >
            <State state={status.workflow.state} tone={status.workflow.state === "waiting" ? "ask" : toneOf(status.workflow.state)} />
            {wordOf(status.workflow.kind)}
          </Link>
          <span className="text-dim">
            {status.workflow.wait && `waits for ${wordOf(status.workflow.wait.reason)}, `}started by{" "}
            <Theirs>{status.workflow.created_by}</Theirs> <Time at={status.workflow.created_at} />
          </span>
        </p>
      )}
      {!status.workflow && rowOf(status).words.includes("failed") && status.last && <LastFailed last={status.last} />}
      <Suspense>
        {asks === "deploy" && <Deploy status={status} onClose={() => setAsks()} />}
        {asks === "rollback" && <Rollback status={status} onClose={() => setAsks()} />}
        {asks === "pause" && <Pause install={install.name} onClose={() => setAsks()} />}
      </Suspense>
    </header>
  );
}
