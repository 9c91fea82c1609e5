import { ok } from "@berth/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { berth, reading } from "~/api/client";
import { memberCommand, type MemberWords } from "~/command";
import Confirm from "~/ui/Confirm";
import { Field, field } from "~/ui/Field";
import { useAct } from "~/ui/useAct";

type Role = "admin" | "operator" | "viewer" | "customer";

const does: Record<Role, string> = {
  viewer: "sees everything",
  operator: "deploys, decides, runs actions",
  admin: "also members, tokens and policies",
  customer: "decides on the changes of one customer",
};

/** Asks who it is and what they may do, and adds them. */
export default function NewMember({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [kind, setKind] = useState<"user" | "service">("user");
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [within, setWithin] = useState<"" | "customer" | "app" | "install">("");
  const [what, setWhat] = useState("");
  const limited = role === "customer" ? "customer" : within;
  const words: MemberWords = {
    name: name.trim(),
    kind,
    email: email.trim(),
    role,
    ...(limited && { within: { kind: limited, name: what } }),
  };
  const add = useAct(
    (w: MemberWords) =>
      ok(
        berth.POST("/members", {
          body: {
            name: w.name,
            kind,
            role,
            ...(w.email && { email: w.email }),
            ...(w.within && { [w.within.kind]: w.within.name }),
          },
        }),
      ),
    [["/members"]],
  );
  const act = async () => {
    if (!words.name) throw new Error("give them a name");
    if (limited && !what) throw new Error(`choose the ${limited}`);
    await add.mutateAsync(words);
  };
  return (
    <Confirm title="New member" verb="Add member" command={memberCommand(words)} act={act} onClose={onClose}>
      <div className="flex flex-col gap-3">
        <Field label="Name" hint="What they log in as, and what decisions are signed with.">
          <input value={name} onChange={(e) => setName(e.target.value)} required maxLength={128} autoComplete="off" className={field} />
        </Field>
        <Field label="Kind">
          <select value={kind} onChange={(e) => setKind(e.target.value as typeof kind)} className={field}>
            <option value="user">a person</option>
            <option value="service">a machine</option>
          </select>
        </Field>
        {kind === "user" && (
          <Field label="Email">
            <input
              type="email"
              value={email}
              onChange={(e) => setEmail(e.target.value)}
              maxLength={254}
              autoComplete="off"
              className={field}
            />
          </Field>
        )}
        <Field label="Role">
          <select value={role} onChange={(e) => setRole(e.target.value as Role)} className={field}>
            {(Object.keys(does) as Role[]).map((r) => (
              <option key={r} value={r}>
                {r}: {does[r]}
              </option>
            ))}
          </select>
        </Field>
        {role !== "customer" && (
          <Field label="Where">
            <select
              value={within}
              onChange={(e) => {
                setWithin(e.target.value as typeof within);
                setWhat("");
              }}
              className={field}
            >
              <option value="">in the whole org</option>
              <option value="customer">only within one customer</option>
              <option value="app">only within one app</option>
              <option value="install">only within one install</option>
            </select>
          </Field>
        )}
        {limited && <Which key={limited} kind={limited} value={what} onChange={setWhat} />}
        <p className="text-dim">
          They log in by your provider, or with a token: <span className="font-mono">berth tokens create NAME --member MEMBER</span> makes
          their first one.
        </p>
      </div>
    </Confirm>
  );
}

const lists = { customer: "/customers", app: "/apps", install: "/installs" } as const;

function Which({ kind, value, onChange }: { kind: keyof typeof lists; value: string; onChange: (name: string) => void }) {
  const all = useQuery(reading(lists[kind], { query: { limit: 200 } }));
  const names = all.data?.items.map((one) => one.name) ?? [];
  return (
    <Field label={`Which ${kind}`} hint={all.data?.next && "The first 200 are offered; any name can be typed."}>
      <input
        value={value}
        onChange={(e) => onChange(e.target.value)}
        list={`known-${kind}`}
        required
        autoComplete="off"
        className={field}
      />
      <datalist id={`known-${kind}`}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </Field>
  );
}
