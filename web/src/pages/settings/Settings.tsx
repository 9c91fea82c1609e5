// Who may do what, who is logged in, who is told, and what was done.
import { Link, useParams } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { Empty } from "~/ui/Answer";
import { Chain } from "./Chain";
import { Customers } from "./Customers";
import { Members } from "./Members";
import { Mutes } from "./Mutes";
import { Sessions } from "./Sessions";
import { Tokens } from "./Tokens";
import { Webhooks } from "./Webhooks";
import { own } from "~/own";

const sections: Record<string, { name: string; page: ComponentType }> = {
  members: { name: "Members", page: Members },
  tokens: { name: "Tokens", page: Tokens },
  sessions: { name: "Sessions", page: Sessions },
  customers: { name: "Customers", page: Customers },
  alerts: { name: "Alerts", page: Mutes },
  webhooks: { name: "Webhooks", page: Webhooks },
  chain: { name: "Chain", page: Chain },
};

export function Settings() {
  const { section } = useParams({ from: "/inside/settings/$section" });
  const found = own(sections, section);
  return (
    <>
      <title>{`${found?.name ?? "Settings"} · Berth`}</title>
      <nav aria-label="Settings" className="mb-5 flex gap-1 overflow-x-auto border-b border-line">
        {Object.entries(sections).map(([key, { name }]) => (
          <Link
            key={key}
            to="/settings/$section"
            params={{ section: key }}
            className="-mb-px border-b-2 border-transparent px-3 py-2 text-dim hover:text-ink aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink"
          >
            {name}
          </Link>
        ))}
      </nav>
      {found ? <found.page /> : <Empty>There are no such settings.</Empty>}
    </>
  );
}
