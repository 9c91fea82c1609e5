import { useRouteContext } from "@tanstack/react-router";
import { whyNot } from "~/api/may";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { bulkCommand, type Operation } from "~/command";
import type { Row } from "./rows";

/** What can be done with the installs that are selected. */
export function BulkBar({
  rows,
  onClear,
  onStart,
}: {
  rows: readonly Row[];
  onClear: () => void;
  onStart: (operation: Operation) => void;
}) {
  const { me } = useRouteContext({ from: "/inside" });
  const no = rows
    .map((r) =>
      whyNot(me.grants, "workflows:write", { customer: r.status.install.customer.id, app: r.status.install.app.id, install: r.id }),
    )
    .find((why) => why !== undefined);
  const tooMany = rows.length > 500 ? "at most 500 installs at once" : undefined;
  const paused = rows.filter((r) => r.status.install.pause).length;
  const names = rows.map((r) => r.name);
  return (
    <div
      role="toolbar"
      aria-label="With the selected installs"
      className="flex flex-wrap items-center gap-2 rounded-md border border-line-strong bg-raised p-2 shadow-lg"
    >
      <span className="px-1 font-medium tabular-nums">{rows.length} selected</span>
      <Button look="main" refused={no ?? tooMany} onClick={() => onStart("deploy")}>
        Deploy newest release…
      </Button>
      <Button refused={no ?? tooMany ?? (paused === rows.length ? "all of them are paused" : undefined)} onClick={() => onStart("pause")}>
        Pause…
      </Button>
      <Button refused={no ?? tooMany ?? (paused === 0 ? "none of them is paused" : undefined)} onClick={() => onStart("resume")}>
        Resume…
      </Button>
      <span className="hidden min-w-0 flex-1 lg:block">
        <Command>{bulkCommand("deploy", names)}</Command>
      </span>
      <Button look="quiet" className="ml-auto" onClick={onClear}>
        Clear
      </Button>
    </div>
  );
}
