import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Answer } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Copy } from "~/ui/Copy";
import { Visible } from "~/ui/Visible";
import { spans } from "./ansi";
import { type LogRecord, readRecords } from "./read";

const pieces = 200; // records of one line that are read: 12 MiB
const atOnce = 20_000; // characters that are put into the page at once

/** A line that is too long for its row, whole and wrapped, bit by bit. */
export function LongLine({ stream, seq, onClose }: { stream: string; seq: number; onClose: () => void }) {
  const line = useQuery({ queryKey: ["log line", stream, seq], queryFn: () => whole(stream, seq), staleTime: Infinity });
  const [show, setShow] = useState(atOnce);
  return (
    <section aria-label={`Line ${seq}`} className="max-h-[45%] min-h-32 overflow-auto border-t border-line-strong bg-ground p-2">
      <Answer of={line}>
        {({ text, more }) => (
          <>
            <header className="mb-1 flex items-center gap-2 text-xs text-dim">
              Line {seq}, {text.length.toLocaleString("en")} characters{more && ", and more: download the log to have all of it"}
              <Copy text={text} label="Copy the line" />
              <Button look="quiet" className="ml-auto" onClick={onClose}>
                Close
              </Button>
            </header>
            <pre className="font-mono text-xs break-all whitespace-pre-wrap">
              {spans(text.slice(0, show)).map((s, i) => (
                <span key={i} className={s.look || undefined}>
                  <Visible>{s.text}</Visible>
                </span>
              ))}
            </pre>
            {text.length > show && (
              <Button onClick={() => setShow(show + 5 * atOnce)}>
                Show more of {(text.length - show).toLocaleString("en")} characters
              </Button>
            )}
          </>
        )}
      </Answer>
    </section>
  );
}

async function whole(stream: string, seq: number): Promise<{ text: string; more: boolean }> {
  const records: LogRecord[] = [];
  let after = seq - 1;
  while (records.length < pieces) {
    const { items, next } = await readRecords(stream, { after, limit: pieces - records.length });
    for (const record of items) {
      records.push(record);
      if (!record.continues) return { text: join(records), more: false };
    }
    if (next === undefined) break;
    after = next;
  }
  return { text: join(records), more: true };
}

const join = (records: LogRecord[]) => records.map((r) => r.text).join("");
