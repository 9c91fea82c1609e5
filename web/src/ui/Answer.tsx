// What stands where an answer is not there yet, is empty, or did not come.
import { Problem } from "@berth/client";
import { type ReactNode, useEffect, useState } from "react";
import { NotLoaded } from "~/late";
import { Button } from "./Button";
import { Copy } from "./Copy";
import { Theirs } from "./Theirs";

interface AnswerProps<T> {
  of: { data: T | undefined; error: unknown; refetch: () => unknown };
  /** Lines of the skeleton. */
  lines?: number;
  children: (data: T) => ReactNode;
}

/** Shows what was read; old data stay while they are read again. */
export function Answer<T>({ of: { data, error, refetch }, lines = 4, children }: AnswerProps<T>) {
  if (data !== undefined) return <>{children(data)}</>;
  if (error) return <Trouble error={error} retry={() => void refetch()} />;
  return <Skeleton lines={lines} />;
}

/** Grey lines, shown only once a wait is felt. */
export function Skeleton({ lines }: { lines: number }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" aria-label="Loading" className="flex min-h-10 flex-col gap-2 py-2">
      {late &&
        Array.from({ length: lines }, (_, i) => <div key={i} className={`h-5 rounded-md bg-hover ${i % 3 === 2 ? "w-1/2" : "w-4/5"}`} />)}
    </div>
  );
}

/** What went wrong, what helps, the id to ask with, and another try. */
export function Trouble({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = error instanceof Problem ? error : undefined;
  const text = problem?.detail || (error instanceof Error ? error.message : String(error));
  return (
    <div role="alert" className="my-2 flex flex-col items-start gap-1 border-l-2 border-bad py-1 pl-3">
      <p className="font-medium break-words text-bad">
        <Theirs>{text}</Theirs>
      </p>
      {problem?.remedy && (
        <p className="break-words text-dim">
          <Theirs>{problem.remedy}</Theirs>
        </p>
      )}
      {problem?.errors?.map((e, i) => (
        <p key={i} className="text-dim">
          <Theirs>{JSON.stringify(e)}</Theirs>
        </p>
      ))}
      <p className="flex items-center gap-2">
        {error instanceof NotLoaded ? (
          <Button onClick={() => location.reload()}>Load the page again</Button>
        ) : (
          retry && <Button onClick={retry}>Try again</Button>
        )}
        {problem?.requestId && (
          <span className="inline-flex items-center font-mono text-xs text-dim">
            <Theirs>{problem.requestId}</Theirs>
            <Copy text={problem.requestId} label="Copy the request's id" />
          </span>
        )}
      </p>
    </div>
  );
}

/** Says what will be here, and the command that makes it so. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className="flex flex-col items-start gap-2 py-4 text-dim">
      <p>{children}</p>
      {action}
    </div>
  );
}
