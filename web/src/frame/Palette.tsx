// Finds places, things and deeds by a few letters.
import { useQueries } from "@tanstack/react-query";
import { useRouteContext, useRouter } from "@tanstack/react-router";
import { Command } from "cmdk";
import { useState } from "react";
import { type Answer as Got, reading } from "~/api/client";
import { Dialog } from "~/ui/Dialog";
import { Theirs } from "~/ui/Theirs";
import { deedsOfInstall, deedsOfOrg, matching } from "./deeds";

type Install = Got<"/installs">["items"][number];

interface Found {
  group: string;
  name: string;
  detail?: string | undefined;
  href: string;
}

const places: Found[] = [
  { group: "Places", name: "Inbox", href: "/" },
  { group: "Places", name: "Installs", href: "/installs" },
  { group: "Places", name: "Apps", href: "/apps" },
  { group: "Places", name: "Runners", href: "/runners" },
  { group: "Places", name: "Settings", href: "/settings" },
];

export default function Palette({ onClose }: { onClose: () => void }) {
  const router = useRouter();
  const { me } = useRouteContext({ from: "/inside" });
  const [typed, setTyped] = useState("");
  const { found, installs } = useQueries({
    queries: [
      reading("/installs", { query: { limit: 200 } }),
      reading("/apps", { query: { limit: 200 } }),
      reading("/changes", { query: { state: "proposed" } }),
      reading("/runners", {}),
    ],
    combine: ([installs, apps, changes, runners]): { found: Found[]; installs: Install[] } => ({
      installs: installs.data?.items ?? [],
      found: [
        ...(changes.data?.items ?? []).map((c) => ({
          group: "Waiting for a decision",
          name: `${c.install.name} · ${c.resource?.name ?? c.kind}`,
          detail: "berth approve " + c.id,
          href: `/changes/${c.id}`,
        })),
        ...(installs.data?.items ?? []).map((i) => ({
          group: "Installs",
          name: i.name,
          detail: `${i.app.name} · ${i.customer.name}`,
          href: `/installs/${i.name}`,
        })),
        ...(apps.data?.items ?? []).map((a) => ({ group: "Apps", name: a.name, href: `/apps/${a.name}` })),
        ...(runners.data?.items ?? []).map((r) => ({
          group: "Runners",
          name: r.install?.name ?? r.id,
          detail: r.kind,
          href: `/runners/${r.id}`,
        })),
      ],
    }),
  });
  const deeds = [
    ...installs.flatMap((i) =>
      deedsOfInstall({ name: i.name, paused: i.pause !== undefined, install: i.id, customer: i.customer.id, app: i.app.id }, me.grants),
    ),
    ...deedsOfOrg(me.grants),
  ];
  const all: Found[] = [
    ...places,
    ...found,
    ...matching(deeds, typed).map(({ name, command, href }) => ({ group: "Do", name, detail: command, href })),
  ];
  const groups = [...new Set(all.map((f) => f.group))];
  const open = (href: string) => {
    onClose();
    router.history.push(`/ui${href}`);
  };
  return (
    <Dialog title="Search" hideTitle onClose={onClose} wide>
      <Command label="Search" className="flex min-h-0 flex-col" loop>
        <Command.Input
          autoFocus
          value={typed}
          onValueChange={setTyped}
          placeholder="An install, an app, a change, a place; or what you want to do"
          className="h-12 border-b border-line bg-transparent px-4 text-md outline-none placeholder:text-dim"
        />
        <Command.List className="overflow-auto p-2">
          <Command.Empty className="p-3 text-dim">Nothing here has that in its name.</Command.Empty>
          {groups.map((group) => (
            <Command.Group key={group} heading={group} className="text-xs text-dim">
              {all
                .filter((f) => f.group === group)
                .map((f) => (
                  <Command.Item
                    key={f.name + f.href}
                    value={`${f.name} ${f.detail ?? ""} ${f.href}`}
                    onSelect={() => open(f.href)}
                    className="flex h-9 cursor-pointer items-center gap-3 rounded-md px-2 text-sm text-ink data-[selected=true]:bg-hover"
                  >
                    <Theirs className="truncate">{f.name}</Theirs>
                    <span className="ml-auto truncate font-mono text-xs text-dim">
                      <Theirs>{f.detail ?? ""}</Theirs>
                    </span>
                  </Command.Item>
                ))}
            </Command.Group>
          ))}
        </Command.List>
      </Command>
    </Dialog>
  );
}
