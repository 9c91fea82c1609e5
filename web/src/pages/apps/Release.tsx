// One release: what is in it, what the vendor signed of it, and who runs it.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useRouteContext } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { type Answer as Got, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { revokeCommand, signCommand, word } from "~/command";
import { written } from "~/diff/visible";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command, Id } from "~/ui/Copy";
import { Facts } from "~/ui/Facts";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Theirs } from "~/ui/Theirs";
import { Time } from "~/ui/Time";
import { useSpreads } from "./Apps";
import { made } from "./Releases";
import { trust } from "./trust";
import { late } from "~/late";

const ByCommand = late(() => import("./ByCommand"));

type One = Got<"/releases/{release}">;

interface ReleaseProps {
  release: One;
}

export function Release() {
  const { app, number } = useParams({ from: "/inside/apps/$app/releases/$number" });
  const one = useQuery(reading("/releases/{release}", { path: { release: `${app}@${number}` } }));
  return (
    <>
      <title>{written(`r${number} · ${app} · Berth`)}</title>
      <Answer of={one}>
        {(release) => (
          <>
            <Head release={release} />
            {release.revocations?.map((r) => (
              <p key={r.digest} role="status" className="mb-4 border-l-2 border-bad bg-bad-ground py-2 pl-3">
                <b className="font-semibold text-bad">Revoked</b> <Time at={r.issued_at} />: <Theirs>{r.reason}</Theirs>
                <span className="mt-0.5 block text-dim">
                  Installs whose customer pinned the key plan and run nothing of it any more. Added by <Theirs>{r.added_by}</Theirs>, key{" "}
                  <Id>{r.key_id}</Id>
                </span>
              </p>
            ))}
            <div className="grid gap-x-10 lg:grid-cols-2">
              <Origin release={release} />
              <Signed release={release} />
            </div>
            <Installs release={release} />
            <Contents release={release} />
          </>
        )}
      </Answer>
    </>
  );
}

function Head({ release: r }: ReleaseProps) {
  const { me } = useRouteContext({ from: "/inside" });
  const no = whyNot(me.grants, "apps:write", { app: r.app.id });
  const [asks, setAsks] = useState<"sign" | "revoke">();
  const [now] = useState(Date.now);
  const name = `${r.app.name}@${r.number}`;
  const before = String(r.number - 1);
  return (
    <header className="mb-4 flex flex-wrap items-center gap-x-4 gap-y-2">
      <h1 className="flex min-w-0 gap-x-2 text-xl font-semibold">
        <Name>{r.app.name}</Name> r{r.number}
      </h1>
      <State {...trust(r, now)} />
      <div className="ml-auto flex flex-wrap items-center gap-2">
        {r.number > 1 && (
          <Link
            to="/apps/$app"
            params={{ app: r.app.name }}
            search={{ tab: "releases", from: before, to: String(r.number) }}
            className="px-1 text-link underline"
          >
            What changed since r{before}
          </Link>
        )}
        <Button refused={no} onClick={() => setAsks("sign")}>
          Sign…
        </Button>
        <Button look="danger" refused={no ?? (r.revoked ? "it is revoked already" : undefined)} onClick={() => setAsks("revoke")}>
          Revoke…
        </Button>
      </div>
      <Suspense>
        {asks === "sign" && (
          <ByCommand title={`Sign ${name}`} command={signCommand(name, r.manifest?.digest)} onClose={() => setAsks(undefined)}>
            Your key signs releases where it lies, in your CI or on your machine: it never comes into a browser, nor to the control plane.
            The command signs the manifest that this page shows, and stops if the release has another one.
          </ByCommand>
        )}
        {asks === "revoke" && (
          <ByCommand title={`Revoke ${name}`} command={revokeCommand(name, r.id)} onClose={() => setAsks(undefined)}>
            Runners whose customer pinned your key keep it for good: they plan, apply and run nothing of this release from then on. What it
            installed keeps running. It cannot be taken back, and needs your key, which is in no browser.
          </ByCommand>
        )}
      </Suspense>
    </header>
  );
}

function Origin({ release: r }: ReleaseProps) {
  return (
    <Section title="Where it comes from" side={<Command>{`berth releases show ${word(`${r.app.name}@${r.number}`)}`}</Command>}>
      <Facts
        of={[
          ["Note", r.origin?.message],
          ["Author", r.origin?.author],
          [
            "Commit",
            r.origin?.commit && (
              <span key="c">
                <Id>{r.origin.commit}</Id> {r.origin.modified && <span className="text-warn">with changes in no commit</span>}
              </span>
            ),
          ],
          [
            "Made",
            <span key="m">
              {made[r.made_by]} by <Theirs>{r.synced_by}</Theirs>, <Time at={r.created_at} />
            </span>,
          ],
          ["Config", `config ${r.config.number}`],
          ["Digest", <Id key="d">{r.digest}</Id>],
          [
            "Id",
            <Id key="i" keep={34}>
              {r.id}
            </Id>,
          ],
        ]}
      />
    </Section>
  );
}

function Signed({ release: r }: ReleaseProps) {
  const statements = r.statements ?? [];
  return (
    <Section title="Signatures">
      {statements.length === 0 ? (
        <Empty>Nobody signed it. Installs whose customer pinned a vendor&apos;s key do not take it.</Empty>
      ) : (
        <>
          <Table
            label="Signatures"
            rows={statements}
            id={(s) => s.digest}
            columns={[
              { head: "Key", cell: (s) => <Id>{s.key_id}</Id> },
              {
                head: "Of",
                cell: (s) =>
                  s.matches ? (
                    <State state="this" tone="good" word="these contents" />
                  ) : (
                    <State state="other" tone="warn" word="other contents" />
                  ),
              },
              { head: "To accept until", cell: (s) => <Time at={s.expires_at} /> },
              { head: "Added", wide: true, cell: (s) => <Time at={s.added_at} /> },
              { head: "By", wide: true, cell: (s) => <Theirs>{s.added_by}</Theirs> },
            ]}
          />
          <p className="py-2 text-xs text-dim">
            Runners verify signatures, with the key that their customer pinned. The control plane has no key and verifies none.
          </p>
        </>
      )}
    </Section>
  );
}

function Installs({ release: r }: ReleaseProps) {
  const spreads = useSpreads(r.app.name);
  const on = (found: typeof spreads.data) => found?.get(r.app.name)?.releases.find((s) => s.number === r.number)?.installs ?? [];
  return (
    <Section
      title="Installs on it"
      count={spreads.data && on(spreads.data).length}
      side={
        <Link to="/installs" search={{ q: `app:${r.app.name} release:r${r.number}` }} className="text-link underline">
          In the matrix
        </Link>
      }
    >
      <Answer of={spreads} lines={1}>
        {(found) => {
          const names = on(found);
          const shown = names.slice(0, 60);
          return names.length === 0 ? (
            <Empty>No install is on it.</Empty>
          ) : (
            <p className="flex flex-wrap gap-x-4 gap-y-1 py-2">
              {shown.map((name) => (
                <Link key={name} to="/installs/$install" params={{ install: name }} className="hover:underline">
                  <Name>{name}</Name>
                </Link>
              ))}
              {names.length > shown.length && <span className="text-dim">and {names.length - shown.length} more</span>}
            </p>
          );
        }}
      </Answer>
    </Section>
  );
}

function Contents({ release: r }: ReleaseProps) {
  const items = r.items ?? [];
  const manifest = r.manifest?.items ?? [];
  return (
    <>
      <Section title="Builds" count={items.length}>
        {items.length === 0 ? (
          <Empty>Nothing of it is built.</Empty>
        ) : (
          <Table
            label="Builds of this release"
            rows={items}
            id={(i) => `${i.kind} ${i.component}`}
            columns={[
              { head: "Of", cell: (i) => <Theirs className="font-medium">{i.component}</Theirs> },
              { head: "Is", cell: (i) => (i.kind === "scripts" ? "scripts of actions" : i.kind) },
              { head: "Type", wide: true, cell: (i) => <span className="text-dim">{i.type.replaceAll("_", " ")}</span> },
              { head: "Artifact", cell: (i) => <Id>{i.artifact.digest}</Id> },
              { head: "Build", wide: true, cell: (i) => <Id>{i.build_id}</Id> },
            ]}
          />
        )}
      </Section>
      {r.manifest && (
        <Section title="Manifest" count={manifest.length} side={<Id>{r.manifest.digest}</Id>}>
          <p className="pt-2 text-dim">
            All that the release brings to an install. A runner accepts each by its digest before it runs any of it.
          </p>
          <Table
            label="Manifest"
            rows={manifest}
            id={(i) => `${i.kind} ${i.name}`}
            columns={[
              { head: "Kind", cell: (i) => i.kind },
              { head: "Name", cell: (i) => <Theirs>{i.name}</Theirs> },
              { head: "Digest", cell: (i) => <Id>{i.digest}</Id> },
            ]}
          />
        </Section>
      )}
    </>
  );
}
