// What can be done with a whole workflow.
import { useQuery } from "@tanstack/react-query";
import { Suspense, useState } from "react";
import { berth, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { Button } from "~/ui/Button";
import type { ActProps } from "./ConfirmAct";
import type { Workflow } from "./Workflow";
import { late } from "~/late";

const ConfirmAct = late(() => import("./ConfirmAct"));

export type Act = Omit<ActProps, "onClose">;

/** Why one may not do anything yet. */
export const readingRights = "Reading what you may do.";

/** Why one may not do something with an install; undefined when one may. */
export function useWhyNot(install: string) {
  const me = useQuery(reading("/me"));
  const found = useQuery(reading("/installs/{install}", { path: { install } }));
  return (right: Parameters<typeof whyNot>[1]): string | undefined =>
    me.data && found.data
      ? whyNot(me.data.grants, right, { install: found.data.id, app: found.data.app.id, customer: found.data.customer.id })
      : readingRights;
}

export function WorkflowActions({ workflow }: { workflow: Workflow }) {
  const not = useWhyNot(workflow.install.name);
  const [act, setAct] = useState<Act>();
  const path = { params: { path: { workflow: workflow.id } } };
  const over = ["succeeded", "failed", "cancelled"].includes(workflow.state);
  const retries = (workflow.state === "failed" || workflow.state === "cancelled") && !workflow.cancel_requested_at;
  return (
    <div className="flex flex-wrap gap-2 sm:ml-auto">
      {!over && !workflow.approve_all && !workflow.plan_only && (
        <Button
          refused={not("changes:decide")}
          onClick={() =>
            setAct({
              title: "Approve all changes",
              text: "Approves what is proposed now, and what this workflow proposes later, unseen. The decisions name this rule and you.",
              verb: "Approve all",
              command: `berth approve --all ${workflow.id}`,
              notes: true,
              run: (note) => berth.POST("/workflows/{workflow}/approve-all", { ...path, body: note ? { note } : {} }),
            })
          }
        >
          Approve all
        </Button>
      )}
      {(retries || workflow.state === "cancelled") && (
        <Button
          look="main"
          refused={not("workflows:write")}
          onClick={() =>
            setAct({
              title: "Retry what failed",
              text: "Plans each failed, denied or cancelled step again and continues from there. An approval still counts where the effect is the same.",
              verb: "Retry failed steps",
              command: `berth retry ${workflow.id}`,
              run: () => berth.POST("/workflows/{workflow}/retry", path),
            })
          }
        >
          Retry failed steps
        </Button>
      )}
      {!over && (
        <Button
          look="danger"
          refused={workflow.cancel_requested_at ? "It is being cancelled: what runs stops at its next safe point." : not("workflows:write")}
          onClick={() =>
            setAct({
              title: "Cancel workflow",
              text: "Starts nothing more, and asks what runs to stop at its next safe point. What was applied stays.",
              verb: "Cancel workflow",
              command: `berth workflows cancel ${workflow.id}`,
              danger: true,
              run: () => berth.POST("/workflows/{workflow}/cancel", path),
            })
          }
        >
          {workflow.cancel_requested_at ? "Being cancelled" : "Cancel workflow"}
        </Button>
      )}
      <Suspense>{act && <ConfirmAct {...act} onClose={() => setAct(undefined)} />}</Suspense>
    </div>
  );
}
