// What a change newly needs, gives and exposes.
import type { ReactNode } from "react";
import { Visible } from "~/ui/Visible";
import { Part } from "./ChangeSide";
import type { Change } from "./Change";

export function Footprint({ change }: { change: Change }) {
  const print = change.plan?.footprint;
  if (!print) return null;
  const parts: [title: string, alarming: boolean, rows: ReactNode[]][] = [
    [
      "Gives rights",
      true,
      (print.grants ?? []).map((g) => (
        <Row key={g.by + g.what} by={g.by}>
          {[g.actions?.join(", "), g.what].filter(Boolean).join(" on ")}
          {g.to?.length ? ` to ${g.to.join(", ")}` : ""}
          {g.scope ? ` (${g.scope})` : ""}
        </Row>
      )),
    ],
    [
      "Reachable from outside",
      true,
      (print.exposed ?? []).map((e) => (
        <Row key={e.kind + e.by} by={e.by}>
          {e.kind.replaceAll("_", " ")}
          {e.at ? ` ${e.at}` : ""}
        </Row>
      )),
    ],
    [
      "Rights it needs",
      (print.rights ?? []).some((r) => r.access === "lacks"),
      (print.rights ?? []).map((r) => (
        <Row
          key={`${r.group} ${r.resource} ${r.namespace}`}
          note={r.access === "lacks" ? "the runner lacks it" : r.new ? "new" : undefined}
        >
          {r.verbs?.join(", ")} {r.resource}
          {r.group ? `.${r.group}` : ""} {r.namespace ? `in ${r.namespace}` : "in the whole cluster"}
        </Row>
      )),
    ],
    [
      "Cloud rights it needs",
      false,
      (print.cloud_actions ?? []).map((c) => (
        <Row key={c.type} by={c.by}>
          {c.actions.join(", ")}
        </Row>
      )),
    ],
    [
      "New images",
      false,
      (print.images ?? []).map((i) => (
        <Row key={i.image + i.by} by={i.by} note={i.known_repository ? undefined : "a repository not used before"}>
          {i.image}
        </Row>
      )),
    ],
    [
      "Hosts it speaks to",
      false,
      (print.hosts ?? []).map((h) => (
        <Row key={h.host + h.by} by={h.by}>
          {h.host}
        </Row>
      )),
    ],
    [
      "Nobody can tell",
      false,
      (print.unknown ?? []).map((u) => (
        <Row key={u.what + u.by} by={u.by}>
          {u.what}
        </Row>
      )),
    ],
  ];
  const some = parts.filter(([, , rows]) => rows.length > 0);
  return (
    <Part title="Footprint" side={print.left_out ? `${print.left_out} more not listed` : undefined}>
      {some.length === 0 && <p className="text-dim">It needs, gives and exposes nothing new.</p>}
      {some.map(([title, alarming, rows]) => (
        <details key={title} open={alarming || rows.length <= 3} className="mt-1">
          <summary className="cursor-pointer">
            <span className={alarming ? "font-medium text-warn" : ""}>{title}</span>{" "}
            <span className="text-xs text-dim tabular-nums">{rows.length}</span>
          </summary>
          <ul className="pl-4">{rows}</ul>
        </details>
      ))}
    </Part>
  );
}

function Row({ by, note, children }: { by?: string; note?: string | undefined; children: ReactNode }) {
  const text = [children]
    .flat()
    .filter((part) => typeof part === "string")
    .join("");
  return (
    <li className="py-0.5 font-mono text-xs break-words">
      <Visible>{text}</Visible>
      {note && <span className="font-sans text-warn"> · {note}</span>}
      {by && (
        <span className="block text-dim">
          <Visible>{by}</Visible>
        </span>
      )}
    </li>
  );
}
