import { useState } from "react";
import { Button } from "~/ui/Button";
import { readRecords } from "./read";

const perRequest = 5_000;

/** Saves the whole log as it was written, page by page. */
export function Download({ stream, lines }: { stream: string; lines: number }) {
  const [done, setDone] = useState<number>();
  const [failed, setFailed] = useState(false);
  const save = async () => {
    setFailed(false);
    setDone(0);
    try {
      const parts: string[] = [];
      for (let after = 0; ;) {
        const { items, next } = await readRecords(stream, { after, limit: perRequest });
        parts.push(items.map((r) => (r.lost_lines ? `[${r.text}]\n` : r.continues ? r.text : `${r.text}\n`)).join(""));
        setDone(items.at(-1)?.seq ?? after);
        if (next === undefined) break;
        after = next;
      }
      const url = URL.createObjectURL(new Blob(parts, { type: "text/plain;charset=utf-8" }));
      const link = document.createElement("a");
      link.href = url;
      link.download = `${stream}.log`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch {
      setFailed(true);
    }
    setDone(undefined);
  };
  return (
    <Button look="quiet" disabled={done !== undefined} onClick={() => void save()} title="Save all lines as they were written">
      {done !== undefined ? `${Math.floor((100 * done) / Math.max(1, lines))} %` : failed ? "Failed: try again" : "Download"}
    </Button>
  );
}
