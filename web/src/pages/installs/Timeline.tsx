// What happened to an install, and how it was at any time against how it is now.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { usePages } from "~/api/all";
import { type Answer as Got, reading } from "~/api/client";
import { Answer } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { Facts } from "~/ui/Facts";
import { More } from "~/ui/More";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { exact } from "~/ui/time";
import { word } from "~/command";
import { Entries } from "./Entries";
import type { TabProps } from "./Install";
import { Value } from "./Value";
import { Theirs } from "~/ui/Theirs";

export function Timeline({ status }: TabProps) {
  const { name, created_at: from } = status.install;
  const search = useSearch({ from: "/inside/installs/$install" });
  const navigate = useNavigate({ from: "/installs/$install" });
  const timeline = usePages("/installs/{install}/timeline", {
    path: { install: name },
    query: { limit: 100, ...(search.kind ? { kind: [search.kind] } : {}), ...(search.at ? { until: search.at } : {}) },
  });
  const set = (more: { at?: string | undefined; kind?: string | undefined }) =>
    void navigate({ search: { ...search, ...more }, replace: true, resetScroll: false });
  return (
    <>
      <Slider key={search.at} from={Date.parse(from)} at={search.at} onChoose={(at) => set({ at })} />
      {search.at && <Then install={name} at={search.at} />}
      <Section
        title={search.at ? "What happened before" : "What happened"}
        side={
          <>
            <select
              aria-label="Only this kind"
              value={search.kind ?? ""}
              onChange={(e) => set({ kind: e.target.value || undefined })}
              className="h-8 rounded-md border border-line-strong bg-ground px-2"
            >
              <option value="">Everything</option>
              {kinds.map((k) => (
                <option key={k} value={`${k}.*`}>
                  {k.replaceAll("_", " ")}
                </option>
              ))}
            </select>
            <span className="hidden sm:block">
              <Command>{`berth history ${word(name)}`}</Command>
            </span>
          </>
        }
      >
        <Answer of={timeline} lines={8}>
          {(entries) => <Entries entries={entries} />}
        </Answer>
        <More of={timeline} />
      </Section>
    </>
  );
}

const kinds = [
  "workflow",
  "change",
  "decision",
  "inputs",
  "install",
  "health",
  "drift",
  "action_run",
  "runner",
  "secret",
  "alert",
  "release",
];

/** A time between the making of the install and now. */
function Slider({ from, at, onChoose }: { from: number; at: string | undefined; onChoose: (at: string | undefined) => void }) {
  const [now] = useState(Date.now);
  const steps = 1000;
  const [position, setPosition] = useState(at ? Math.round(((Date.parse(at) - from) / Math.max(1, now - from)) * steps) : steps);
  const time = from + ((now - from) * position) / steps;
  const choose = () => onChoose(position >= steps ? undefined : new Date(time).toISOString());
  return (
    <div className="mb-6 flex flex-wrap items-center gap-x-4 gap-y-1">
      <label className="flex min-w-60 flex-1 items-center gap-3">
        <span className="whitespace-nowrap text-dim">As it was</span>
        <input
          type="range"
          min={0}
          max={steps}
          value={position}
          aria-valuetext={position >= steps ? "now" : exact(time)}
          onChange={(e) => setPosition(e.target.valueAsNumber)}
          onPointerUp={choose}
          onKeyUp={choose}
          onBlur={() => position >= steps === (at === undefined) || choose()}
          className="h-6 min-w-0 flex-1 accent-(--color-accent)"
        />
      </label>
      <span className="w-44 text-right tabular-nums">{position >= steps ? "now" : exact(time)}</span>
      {at && <Button onClick={() => onChoose(undefined)}>Back to now</Button>}
    </div>
  );
}

type Change = Got<"/installs/{install}/snapshot/diff">["changes"][number];

function Then({ install, at }: { install: string; at: string }) {
  const then = useQuery(reading("/installs/{install}/snapshot", { path: { install }, query: { at } }));
  const diff = useQuery(reading("/installs/{install}/snapshot/diff", { path: { install }, query: { from: at } }));
  return (
    <div className="grid grid-cols-1 gap-x-8 lg:grid-cols-[2fr_3fr]">
      <Section title={`State at ${exact(Date.parse(at))}`}>
        <Answer of={then}>
          {(s) => (
            <>
              <Facts
                of={[
                  ["State", <State key="s" state={s.install.state} />],
                  ["Release", s.release ? `r${s.release.number}` : "none"],
                  ["Inputs", `version ${s.inputs.version}`],
                  [
                    "Runner",
                    s.runner && (
                      <State
                        state={s.runner.online ? "online" : "offline"}
                        word={`${s.runner.online ? "online" : "offline"}, switch ${s.runner.switch}`}
                      />
                    ),
                  ],
                  ["Waiting for a decision", s.approvals.length > 0 && `${s.approvals.length} changes`],
                ]}
              />
              <ul aria-label="Resources at that time">
                {s.resources.map((r) => (
                  <li key={r.name} className="flex min-h-8 items-center gap-3 border-b border-line px-2">
                    <Theirs className="min-w-0 flex-1 truncate font-medium">{r.name}</Theirs>
                    <State state={r.state === "live" ? r.health : r.state} />
                    <span className="w-10 text-right text-dim tabular-nums">{r.release ? `r${r.release.number}` : ""}</span>
                  </li>
                ))}
              </ul>
            </>
          )}
        </Answer>
      </Section>
      <Section title="Against now" side={<Command>{`berth installs snapshot ${word(install)} --diff ${at.slice(0, 19)}Z`}</Command>}>
        <Answer of={diff}>
          {({ changes }) =>
            changes.length === 0 ? (
              <p className="py-3 text-dim">Nothing differs.</p>
            ) : (
              <Table<Change>
                label="What differs"
                rows={changes}
                id={(c) => c.path}
                columns={[
                  { head: "What", cell: (c) => <Theirs className="font-mono text-xs">{c.path}</Theirs> },
                  { head: "Then", cell: (c) => <Side value={c.old} sealed={c.op === "replaced"} /> },
                  { head: "Now", cell: (c) => <Side value={c.new} sealed={c.op === "replaced"} /> },
                ]}
              />
            )
          }
        </Answer>
      </Section>
    </div>
  );
}

function Side({ value, sealed }: { value: unknown; sealed: boolean }) {
  if (sealed) return <span className="text-dim">sealed again</span>;
  if (value === undefined || value === null) return <span className="text-dim">—</span>;
  return <Value>{value}</Value>;
}
