import { ok } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { useRouteContext, useRouter } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { type Answer as Got, berth, reading } from "~/api/client";
import { whyNot } from "~/api/may";
import { createCommand } from "~/command";
import { Answer } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Field, field } from "~/ui/Field";
import { late } from "~/late";

const Confirm = late(() => import("~/ui/Confirm"));

type App = Got<"/apps">["items"][number];

/** Asks for what an install needs, and makes it. */
export function NewInstall({ look = "plain" }: { look?: "main" | "plain" }) {
  const { me } = useRouteContext({ from: "/inside" });
  const [asks, setAsks] = useState(false);
  return (
    <>
      <Button look={look} refused={whyNot(me.grants, "installs:write")} onClick={() => setAsks(true)}>
        New install…
      </Button>
      <Suspense>{asks && <Form onClose={() => setAsks(false)} />}</Suspense>
    </>
  );
}

function Form({ onClose }: { onClose: () => void }) {
  const router = useRouter();
  const apps = useQuery(reading("/apps", { query: { limit: 200 } }));
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState("");
  const [customer, setCustomer] = useState("");
  const [stack, setStack] = useState<"local" | "kubernetes">("local");
  const [inputs, setInputs] = useState<Record<string, string>>({});
  const [provision, setProvision] = useState(true);
  const shipped = (apps.data?.items ?? []).filter((a) => a.release !== undefined);
  const app = shipped.find((a) => a.name === chosen) ?? shipped[0];
  const given = Object.fromEntries(Object.entries(inputs).filter(([, value]) => value !== ""));
  const words = { name: name.trim(), app: app?.name ?? "", customer: customer.trim() || name.trim(), stack, inputs: given, provision };
  const act = async () => {
    if (!app) throw new Error("no app has a release yet: berth sync FOLDER makes one");
    if (!words.name) throw new Error("give it a name");
    const made = await ok(berth.POST("/installs", { body: { ...words, create_customer: true } }));
    if (made.workflow_id) await router.navigate({ to: "/workflows/$workflow", params: { workflow: made.workflow_id } });
    else await router.navigate({ to: "/installs/$install", params: { install: made.name } });
  };
  return (
    <Confirm title="New install" verb="Create install" command={createCommand(words)} act={act} onClose={onClose}>
      <div className="flex max-h-[48vh] flex-col gap-3 overflow-auto p-1">
        <Answer of={apps} lines={1}>
          {() =>
            shipped.length === 0 ? (
              <p>No app has a release yet. Sync an app folder first: its first release can be installed.</p>
            ) : (
              <Field label="App">
                <select value={app?.name ?? ""} onChange={(e) => setChosen(e.target.value)} className={field}>
                  {shipped.map((a) => (
                    <option key={a.id} value={a.name}>
                      {a.name}, r{a.release?.number}
                    </option>
                  ))}
                </select>
              </Field>
            )
          }
        </Answer>
        <Field label="Name">
          <input value={name} onChange={(e) => setName(e.target.value)} required maxLength={63} autoComplete="off" className={field} />
        </Field>
        <Field label="Customer" hint="Made when there is none of this name. Empty: called as the install.">
          <input value={customer} onChange={(e) => setCustomer(e.target.value)} maxLength={63} autoComplete="off" className={field} />
        </Field>
        <Field label="Where its runner runs">
          <select value={stack} onChange={(e) => setStack(e.target.value as typeof stack)} className={field}>
            <option value="local">on the machine of the control plane</option>
            <option value="kubernetes">in the customer's cluster, which enrols it</option>
          </select>
        </Field>
        {app && <Inputs key={app.id} app={app} values={inputs} onChange={setInputs} />}
        <label className="flex items-center gap-2">
          <input
            type="checkbox"
            checked={provision}
            onChange={(e) => setProvision(e.target.checked)}
            className="size-4 accent-(--color-accent)"
          />
          Provision it: each change is planned and shown, and carried out once it is approved
        </label>
      </div>
    </Confirm>
  );
}

/** The inputs of an app. Those that are sensitive are not typed into a page. */
function Inputs({
  app,
  values,
  onChange,
}: {
  app: App;
  values: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
}) {
  const config = useQuery({
    ...reading("/configs/{config}", { path: { config: app.config?.id ?? "" } }),
    enabled: app.config !== undefined,
  });
  const all = config.data?.inputs ?? [];
  const hidden = all.filter((i) => i.sensitive);
  return (
    <>
      {all
        .filter((i) => !i.sensitive)
        .map((i) => (
          <Field key={i.name} label={`${i.display_name || i.name}${i.required ? " (required)" : ""}`} hint={i.description}>
            <input
              value={values[i.name] ?? ""}
              onChange={(e) => onChange({ ...values, [i.name]: e.target.value })}
              required={i.required}
              placeholder={i.default}
              autoComplete="off"
              className={field}
            />
          </Field>
        ))}
      {hidden.length > 0 && (
        <p className="text-dim">
          {hidden.map((i) => i.name).join(", ")}: sensitive, so not asked for here.{" "}
          {hidden.some((i) => i.required)
            ? "It is required: create this install at the command line, which asks for it."
            : "The command line sets it."}
        </p>
      )}
    </>
  );
}
