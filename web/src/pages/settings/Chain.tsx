// The org's record of what was done, and whether it holds together: each record is hashed
// here, in the browser, and must name the one before it.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { reading } from "~/api/client";
import { Answer, Empty } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command, Id } from "~/ui/Copy";
import { Section } from "~/ui/Section";
import { State } from "~/ui/State";
import { Table } from "~/ui/Table";
import { Time } from "~/ui/Time";
import { said, verify } from "./verify";
import { Theirs } from "~/ui/Theirs";

const page = 100;

export function Chain() {
  const [before, setBefore] = useState<number>();
  const head = useQuery(reading("/chains/{chain}/records", { path: { chain: "org" }, query: { limit: 1 } }));
  const last = Math.min(before ?? Infinity, head.data?.head_seq ?? 0);
  const from = Math.max(0, last - page);
  const records = useQuery({
    ...reading("/chains/{chain}/records", { path: { chain: "org" }, query: { after_seq: from, limit: page } }),
    enabled: head.data !== undefined,
  });
  const items = records.data?.items.filter((r) => r.seq <= last) ?? [];
  const verdict = useQuery({ queryKey: ["verified", items.map((r) => r.hash)], queryFn: () => verify(items), enabled: items.length > 0 });
  return (
    <Section
      title="What was done here"
      side={
        <>
          {verdict.data && (
            <State
              state={verdict.data.ok ? "healthy" : "failed"}
              word={verdict.data.ok ? `${items.length} records fit together` : verdict.data.why}
            />
          )}
          <Command>berth orgs chain vendor.jsonl</Command>
        </>
      }
    >
      <Answer of={head.error ? head : records}>
        {() =>
          items.length === 0 ? (
            <Empty>Nothing was done yet. Each change through the API will be a record here.</Empty>
          ) : (
            <Table
              label="Records"
              rows={items.toReversed()}
              id={(r) => String(r.seq)}
              columns={[
                { head: "No.", number: true, cell: (r) => r.seq },
                { head: "What", cell: (r) => <Theirs title={said(r.body).what}>{said(r.body).what}</Theirs> },
                { head: "Who", cell: (r) => said(r.body).actor },
                { head: "When", cell: (r) => <Time at={r.recorded_at} /> },
                { head: "Hash", wide: true, cell: (r) => <Id>{r.hash}</Id> },
              ]}
            />
          )
        }
      </Answer>
      <div className="mt-2 flex gap-2">
        {from > 0 && <Button onClick={() => setBefore(from)}>Older</Button>}
        {before !== undefined && <Button onClick={() => setBefore(undefined)}>Newest</Button>}
      </div>
      {head.data && (
        <p className="mt-3 text-dim">
          Head: record {head.data.head_seq}, <Theirs className="font-mono text-xs break-all">{head.data.head_hash}</Theirs>. To check all of
          it offline: <code className="font-mono text-xs">berth orgs chain FILE</code>, then{" "}
          <code className="font-mono text-xs">berth-verify</code>.
        </p>
      )}
    </Section>
  );
}
