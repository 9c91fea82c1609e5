// The vendor's page about an install, with its widgets.
import { Problem } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Suspense } from "react";
import { type Answer as Got, reading } from "~/api/client";
import { Answer, Empty, Skeleton } from "~/ui/Answer";
import { Command } from "~/ui/Copy";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Visible } from "~/ui/Visible";
import { standing } from "./Cell";
import { word } from "~/command";
import type { TabProps } from "./Install";
import { Theirs } from "~/ui/Theirs";
import { late } from "~/late";

const Html = late(() => import("~/ui/Html"));

type Widget = Got<"/installs/{install}/readme">["widgets"][number];

export function Readme({ status }: TabProps) {
  const { name } = status.install;
  const readme = useQuery(reading("/installs/{install}/readme", { path: { install: name } }));
  const missing = readme.error instanceof Problem && readme.error.status === 404;
  if (missing) {
    return (
      <Empty>
        The app has no README. Name one in its metadata.toml (<code className="font-mono">readme</code>), and it will be here with the
        values of this install.
      </Empty>
    );
  }
  return (
    <Answer of={readme} lines={8}>
      {({ html, widgets, state_version }) => (
        <div className="flex flex-col gap-x-8 lg:flex-row">
          <div className="min-w-0 flex-1">
            <Suspense fallback={<Skeleton lines={6} />}>
              <Html className="readme max-w-[72ch]">{html}</Html>
            </Suspense>
            <p className="mt-6 flex flex-wrap items-center gap-3 text-xs text-dim">
              with version {state_version} of the state
              <Command>{`berth installs readme ${word(name)}`}</Command>
            </p>
          </div>
          {widgets.length > 0 && (
            <aside className="w-full lg:w-80">
              <Section title="On this page" count={widgets.length}>
                {widgets.map((w, i) => (
                  <WidgetView key={i} widget={w} install={name} />
                ))}
              </Section>
            </aside>
          )}
        </div>
      )}
    </Answer>
  );
}

/** A tag of the README: a resource as it is now, or the text that stood in it. */
function WidgetView({ widget: { type, text, resource }, install }: { widget: Widget; install: string }) {
  if (resource) {
    const { tone, word: says } = standing({
      state: resource.state ?? "absent",
      health: resource.health ?? "unknown",
      switched_off: resource.switched_off,
    });
    return (
      <Link
        to="/installs/$install"
        params={{ install }}
        search={{ resource: resource.name }}
        className="flex min-h-9 items-center gap-3 border-b border-line px-2 hover:bg-hover"
      >
        <Theirs className="min-w-0 flex-1 truncate font-medium">{resource.name}</Theirs>
        <State state={resource.state ?? "absent"} tone={tone} word={says} />
      </Link>
    );
  }
  return (
    <div className="border-b border-line px-2 py-2">
      <p className="text-xs text-dim">{type}</p>
      <p className={type === "mermaid" ? "overflow-x-auto font-mono text-xs whitespace-pre" : "whitespace-pre-wrap"}>
        <Visible>{text}</Visible>
      </p>
    </div>
  );
}
