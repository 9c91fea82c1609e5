import { Link, useRouteContext } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { usePages } from "~/api/all";
import { whyNot } from "~/api/may";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Id } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { late } from "~/late";

const NewCustomer = late(() => import("./NewCustomer"));

export function Customers() {
  const { me } = useRouteContext({ from: "/inside" });
  const [adds, setAdds] = useState(false);
  const add = (
    <Button refused={whyNot(me.grants, "customers:write")} onClick={() => setAdds(true)}>
      New customer…
    </Button>
  );
  const customers = usePages("/customers", { query: { limit: 200 } });
  return (
    <Section title="Customers" count={customers.data?.length} side={add}>
      <Answer of={customers}>
        {(all) =>
          all.length === 0 ? (
            <Empty action={add}>No customer yet: somebody in whose accounts and machines installs run.</Empty>
          ) : (
            <Table
              label="Customers"
              rows={all}
              id={(c) => c.id}
              columns={[
                {
                  head: "Name",
                  cell: (c) => (
                    <Link to="/installs" className="font-medium hover:underline">
                      <Name>{c.name}</Name>
                    </Link>
                  ),
                },
                {
                  head: "Labels",
                  cell: (c) =>
                    Object.entries(c.labels)
                      .map(([k, v]) => `${k}=${v}`)
                      .join(" "),
                },
                { head: "Since", cell: (c) => <Time at={c.created_at} /> },
                { head: "Id", wide: true, cell: (c) => <Id>{c.id}</Id> },
              ]}
            />
          )
        }
      </Answer>
      <More of={customers} />
      <Suspense>{adds && <NewCustomer onClose={() => setAdds(false)} />}</Suspense>
    </Section>
  );
}
