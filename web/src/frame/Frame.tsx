// What is around every page: navigation, where one is, the search, and how the stream
// of events stands.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouter, useSearch } from "@tanstack/react-router";
import { type ReactNode, Suspense, useCallback, useEffect, useState } from "react";
import { reading } from "~/api/client";
import { Live } from "~/live/Live";
import { Account } from "./Account";
import { Crumbs } from "./Crumbs";
import { Icon, type IconName } from "./Icon";
import { LiveMark } from "./LiveMark";
import { useShortcuts } from "./shortcuts";
import { kept } from "./kept";
import { warm } from "./warm";
import { late } from "~/late";

const Palette = late(() => import("./Palette"));
const Keys = late(() => import("./Keys"));
const Side = late(() => import("./Side"));

const places: { to: "/" | "/installs" | "/apps" | "/runners" | "/settings"; icon: IconName; name: string; keys: string }[] = [
  { to: "/", icon: "inbox", name: "Inbox", keys: "g i" },
  { to: "/installs", icon: "installs", name: "Installs", keys: "g s" },
  { to: "/apps", icon: "apps", name: "Apps", keys: "g a" },
  { to: "/runners", icon: "runners", name: "Runners", keys: "g r" },
  { to: "/settings", icon: "settings", name: "Settings", keys: "g e" },
];

export function Frame() {
  const router = useRouter();
  const side = kept(useSearch({ from: "/inside" }).side);
  const [asks, setAsks] = useState<"palette" | "keys">();
  const loggedOut = useCallback(() => {
    void router.navigate({ to: "/login", search: { to: router.state.location.href }, reloadDocument: true });
  }, [router]);
  useShortcuts({
    "?": () => setAsks("keys"),
    "mod+k": () => setAsks("palette"),
    ...Object.fromEntries(places.map(({ to, keys }) => [keys, () => void router.navigate({ to })])),
  });
  useEffect(() => warm(router), [router]);
  // A new page is told to screen readers, and begins at its top.
  useEffect(
    () =>
      router.subscribe(
        "onResolved",
        ({ pathChanged }) => pathChanged && document.getElementById("content")?.focus({ preventScroll: true }),
      ),
    [router],
  );
  return (
    <Live onLoggedOut={loggedOut}>
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:z-20 focus:bg-ground focus:p-2">
        Skip to the content
      </a>
      <div className="flex min-h-dvh">
        <nav
          aria-label="Places"
          className="fixed inset-x-0 bottom-0 z-10 flex justify-around border-t border-line bg-raised p-1 sm:sticky sm:top-0 sm:h-dvh sm:w-14 sm:flex-col sm:justify-start sm:gap-0.5 sm:border-t-0 sm:border-r sm:p-2 lg:w-[220px]"
        >
          <Org />
          {places.map((place) => (
            <Place key={place.to} {...place} />
          ))}
        </nav>
        <div className="min-w-0 flex-1 pb-14 sm:pb-0">
          <header className="sticky top-0 z-10 flex h-12 items-center gap-3 border-b border-line bg-ground px-4 sm:px-6">
            <Crumbs />
            <div className="ml-auto flex items-center gap-2">
              <button
                type="button"
                onClick={() => setAsks("palette")}
                className="flex h-8 items-center gap-2 rounded-md border border-line-strong px-2 text-dim hover:bg-hover"
              >
                <Icon name="search" />
                <span className="hidden md:inline">Search</span>
                <kbd className="hidden font-mono text-xs md:inline">{navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl K"}</kbd>
                <span className="sr-only md:hidden">Search</span>
              </button>
              <LiveMark />
              <Account onKeys={() => setAsks("keys")} />
            </div>
          </header>
          <main id="content" tabIndex={-1} className="max-w-[1440px] px-4 py-5 outline-none sm:px-6">
            <Outlet />
          </main>
        </div>
        <Suspense>
          {side && (
            <Side
              kept={side}
              onClose={() => void router.navigate({ to: ".", search: (now) => ({ ...now, side: undefined }), resetScroll: false })}
            />
          )}
        </Suspense>
      </div>
      <Suspense>
        {asks === "palette" && <Palette onClose={() => setAsks(undefined)} />}
        {asks === "keys" && <Keys onClose={() => setAsks(undefined)} />}
      </Suspense>
    </Live>
  );
}

function Org() {
  const { data: me } = useQuery(reading("/me"));
  return (
    <p className="mb-3 hidden h-8 items-center gap-2 px-2 font-semibold sm:flex" title={me?.org.name}>
      <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true" className="shrink-0">
        <rect width="16" height="16" rx="4" className="fill-accent" />
        <path d="M4 4h2v8H4zM7 4h5v2H7zM7 10h5v2H7z" fill="#fff" />
      </svg>
      <span className="hidden truncate lg:inline">{me?.org.name}</span>
    </p>
  );
}

function Place({ to, icon, name, keys }: (typeof places)[number]): ReactNode {
  return (
    <Link
      to={to}
      activeOptions={{ exact: to === "/" }}
      title={`${name} (${keys})`}
      className="flex h-11 flex-col items-center justify-center gap-x-2 rounded-md px-2 text-xs text-dim hover:bg-hover hover:text-ink aria-[current=page]:bg-hover aria-[current=page]:font-medium aria-[current=page]:text-ink sm:h-8 sm:flex-row sm:text-sm lg:justify-start"
    >
      <Icon name={icon} />
      <span className="sm:sr-only lg:not-sr-only">{name}</span>
    </Link>
  );
}
