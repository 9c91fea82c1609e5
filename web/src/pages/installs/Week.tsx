// How an install was over the last seven days, in the fleet.
import { useQuery } from "@tanstack/react-query";
import { type Answer, berth, type Key } from "~/api/client";
import { HealthBars, share } from "~/ui/Health";
import { Together } from "./together";

type Past = Answer<"/health/history">["items"][number];

/** Lines that come to the screen together ask together. */
const together = new Together<Past>(
  async (install) => {
    const found = new Map<string, Past>();
    for await (const past of berth.list("/health/history", { query: { install, limit: install.length } })) found.set(past.install.id, past);
    return found;
  },
  100,
  60,
);

/** Health of seven days, a bar for each; nothing until it is read. */
export function Week({ install }: { install: string }) {
  const { data } = useQuery({
    // Events find it by the path and the install.
    queryKey: ["/health/history", { path: { install } }] satisfies Key,
    queryFn: async () => (await together.ask(install)) ?? null,
  });
  if (!data) return null;
  const says = `${share(data)} over 7 days`;
  return (
    <span title={says} className="ml-2 hidden shrink-0 sm:block">
      <HealthBars strip={data.strip} />
      <span className="sr-only">, {says}</span>
    </span>
  );
}
