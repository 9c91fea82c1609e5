import { ok } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { useState } from "react";
import { berth, reading } from "~/api/client";
import { Answer } from "~/ui/Answer";
import Confirm from "~/ui/Confirm";
import { rollbackCommand } from "~/command";
import { Parts } from "./Parts";
import type { InstallStatus } from "./rows";

/** Goes back to an earlier release, with the inputs of then. */
export default function Rollback({ status, onClose }: { status: InstallStatus; onClose: () => void }) {
  const { install } = status;
  const router = useRouter();
  const [release, setRelease] = useState("");
  const [components, setComponents] = useState<string[]>([]);
  const [planOnly, setPlanOnly] = useState(false);
  const releases = useQuery(reading("/apps/{app}/releases", { path: { app: install.app.id }, query: { limit: 50 } }));
  const act = async () => {
    const made = await ok(
      berth.POST("/installs/{install}/workflows", {
        params: { path: { install: install.id } },
        body: { kind: "rollback", plan_only: planOnly, ...(release ? { release } : {}), ...(components.length > 0 ? { components } : {}) },
      }),
    );
    await router.navigate({ to: "/workflows/$workflow", params: { workflow: made.id } });
  };
  return (
    <Confirm
      title={`Roll ${install.name} back`}
      verb={planOnly ? "Plan the rollback" : "Roll back"}
      command={rollbackCommand({ install: install.name, components, release, planOnly })}
      act={act}
      onClose={onClose}
    >
      <p>
        It goes back with the inputs that it had then. Secrets, toggles and data do not go back. It is planned, shown, and needs its own
        approval.
      </p>
      <label className="mt-3 flex flex-col gap-1">
        <span>To</span>
        <Answer of={releases} lines={1}>
          {({ items }) => (
            <select
              value={release}
              onChange={(e) => setRelease(e.target.value)}
              className="h-9 rounded-md border border-line-strong bg-ground px-2"
            >
              <option value="">the last good state before r{install.release?.number}</option>
              {items
                .filter((r) => r.number < (install.release?.number ?? 0))
                .map((r) => (
                  <option key={r.id} value={r.number}>
                    r{r.number}
                    {r.revoked ? " (revoked)" : ""}
                  </option>
                ))}
            </select>
          )}
        </Answer>
      </label>
      <Parts install={install.name} chosen={components} onChoose={setComponents} none="all of it" />
      <label className="mt-3 flex items-center gap-2">
        <input
          type="checkbox"
          checked={planOnly}
          onChange={(e) => setPlanOnly(e.target.checked)}
          className="size-4 accent-(--color-accent)"
        />
        Plan only: show what would change, and change nothing
      </label>
    </Confirm>
  );
}
