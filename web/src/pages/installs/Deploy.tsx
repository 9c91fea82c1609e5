import { ok } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { useState } from "react";
import { berth, reading } from "~/api/client";
import { Answer } from "~/ui/Answer";
import Confirm from "~/ui/Confirm";
import { deployCommand } from "~/command";
import { Parts } from "./Parts";
import type { InstallStatus } from "./rows";

/** Brings an install, or some of its components, to a release. */
export default function Deploy({ status, onClose }: { status: InstallStatus; onClose: () => void }) {
  const { install, newest_release: newest } = status;
  const router = useRouter();
  const [release, setRelease] = useState("");
  const [components, setComponents] = useState<string[]>([]);
  const [planOnly, setPlanOnly] = useState(false);
  const releases = useQuery(reading("/apps/{app}/releases", { path: { app: install.app.id }, query: { limit: 50 } }));
  const act = async () => {
    const made = await ok(
      berth.POST("/installs/{install}/workflows", {
        params: { path: { install: install.id } },
        body: {
          kind: status.standing === "live" ? "deploy" : "provision",
          plan_only: planOnly,
          ...(release ? { release } : {}),
          ...(components.length > 0 ? { components } : {}),
        },
      }),
    );
    await router.navigate({ to: "/workflows/$workflow", params: { workflow: made.id } });
  };
  const live = status.standing === "live";
  const number = release || newest?.number;
  const command = live
    ? deployCommand({ install: install.name, components, release, planOnly })
    : deployCommand({ install: install.name, release, planOnly }).replace("berth deploy", "berth installs provision");
  return (
    <Confirm
      title={live ? `Deploy to ${install.name}` : `Provision ${install.name}`}
      verb={`${planOnly ? "Plan" : live ? "Deploy" : "Provision"}${number ? ` r${number}` : ""}`}
      command={command}
      act={act}
      onClose={onClose}
    >
      <p>Each change is planned and shown; it is carried out once it is approved.</p>
      <label className="mt-3 flex flex-col gap-1">
        <span>Release</span>
        <Answer of={releases} lines={1}>
          {({ items }) => (
            <select
              value={release}
              onChange={(e) => setRelease(e.target.value)}
              className="h-9 rounded-md border border-line-strong bg-ground px-2"
            >
              <option value="">the newest{newest ? `, r${newest.number}` : ""}</option>
              {items.map((r) => (
                <option key={r.id} value={r.number}>
                  r{r.number}
                  {r.number === install.release?.number ? " (here now)" : ""}
                  {r.revoked ? " (revoked)" : ""}
                  {r.origin?.message ? ` · ${r.origin.message.split("\n")[0]?.slice(0, 60)}` : ""}
                </option>
              ))}
            </select>
          )}
        </Answer>
      </label>
      {live && <Parts install={install.name} chosen={components} onChoose={setComponents} none="all components, and not the sandbox" />}
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
