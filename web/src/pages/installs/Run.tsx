import { ok } from "@berth/client";
import { useRouter } from "@tanstack/react-router";
import { useState } from "react";
import { berth } from "~/api/client";
import Confirm from "~/ui/Confirm";
import { Field, field } from "~/ui/Field";
import type { Action } from "./Actions";
import { runCommand } from "~/command";
import { Theirs } from "~/ui/Theirs";

/** Asks for the inputs of an action, and runs it. */
export default function Run({ install, action, onClose }: { install: string; action: Action; onClose: () => void }) {
  const router = useRouter();
  const [inputs, setInputs] = useState<Record<string, string>>({});
  const given = Object.fromEntries(Object.entries(inputs).filter(([, v]) => v !== ""));
  const missing = action.inputs.find((i) => i.required && !given[i.name]);
  const act = async () => {
    if (missing) throw new Error(`${missing.name} is required`);
    const made = await ok(
      berth.POST("/installs/{install}/actions/{action}/runs", {
        params: { path: { install, action: action.name } },
        body: { inputs: given },
      }),
    );
    await router.navigate({ to: "/workflows/$workflow", params: { workflow: made.id } });
  };
  return (
    <Confirm
      title={`Run ${action.name}`}
      verb={`Run ${action.name}`}
      command={runCommand(install, action.name, given)}
      act={act}
      onClose={onClose}
    >
      <p>{action.health_check ? "A health check runs at once." : "It is a change: you see it, and decide on it, before it runs."}</p>
      {action.inputs.map((i) => (
        <div key={i.name} className="mt-3">
          <Field
            label={
              <>
                <Theirs className="font-medium">{i.name}</Theirs>
                {i.required && <span className="text-dim"> required</span>}
              </>
            }
            hint={i.description && <Theirs>{i.description}</Theirs>}
          >
            <input
              value={inputs[i.name] ?? ""}
              onChange={(e) => setInputs({ ...inputs, [i.name]: e.target.value })}
              autoComplete="off"
              className={field}
            />
          </Field>
        </div>
      ))}
    </Confirm>
  );
}
