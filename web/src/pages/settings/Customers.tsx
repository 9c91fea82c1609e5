import { Link } from "@tanstack/react-router";
import { usePages } from "~/api/all";
import { Answer, Empty } from "~/ui/Answer";
import { Command, Id } from "~/ui/Copy";
import { More } from "~/ui/More";
import { Name } from "~/ui/Name";
import { Section } from "~/ui/Section";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";

export function Customers() {
  const customers = usePages("/customers", { query: { limit: 200 } });
  return (
    <Section title="Customers" count={customers.data?.length} side={<Command>berth customers create NAME</Command>}>
      <Answer of={customers}>
        {(all) =>
          all.length === 0 ? (
            <Empty action={<Command>berth customers create NAME</Command>}>
              No customer yet: somebody in whose accounts and machines installs run.
            </Empty>
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
    </Section>
  );
}
