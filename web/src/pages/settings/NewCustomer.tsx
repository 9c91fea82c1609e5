import { ok } from "@berth/client";
import { useState } from "react";
import { berth } from "~/api/client";
import { customerCommand, labelsOf } from "~/command";
import Confirm from "~/ui/Confirm";
import { Field, field } from "~/ui/Field";
import { useAct } from "~/ui/useAct";

/** Asks for a name and labels, and adds a customer. */
export default function NewCustomer({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [labels, setLabels] = useState("");
  const add = useAct((body: { name: string; labels: Record<string, string> }) => ok(berth.POST("/customers", { body })), [["/customers"]]);
  const act = async () => {
    if (!name.trim()) throw new Error("give it a name");
    await add.mutateAsync({ name: name.trim(), labels: labelsOf(labels) });
  };
  return (
    <Confirm title="New customer" verb="Add customer" command={customerCommand(name.trim(), labels)} act={act} onClose={onClose}>
      <div className="flex flex-col gap-3">
        <Field label="Name">
          <input value={name} onChange={(e) => setName(e.target.value)} required maxLength={63} autoComplete="off" className={field} />
        </Field>
        <Field label="Labels" hint="As key=value, with spaces between them: tier=gold region=eu">
          <input value={labels} onChange={(e) => setLabels(e.target.value)} autoComplete="off" spellCheck={false} className={field} />
        </Field>
      </div>
    </Confirm>
  );
}
