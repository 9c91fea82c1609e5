// Follows the events of the org: one stream for all tabs of a browser. The tab that
// holds a lock reads the stream and tells the others; when it closes, the next one
// goes on where it was.
import { createParser } from "eventsource-parser";
import type { OrgEvent } from "./affects";

/** What is known of the stream. */
export type Standing = { is: "connecting" } | { is: "live" } | { is: "stale"; since: number; why: string } | { is: "logged_out" };

type Message =
  | { say: "events"; events: OrgEvent[]; position: number }
  | { say: "standing"; standing: Standing; position: number }
  | { say: "lost" }
  | { say: "hello" };

export interface Handlers {
  events: (events: OrgEvent[]) => void;
  standing: (standing: Standing) => void;
  /** Events are gone that nobody saw: everything may be another. */
  lost: () => void;
}

const firstPause = 500;
const maxPause = 15_000;
/** The service sends something every 20 s; a stream that is silent for longer is dead. */
const silence = 45_000;
/** Events that come within so many milliseconds after others are told together. */
const gather = 60;

/** Follows until the signal aborts. */
export function follow(handlers: Handlers, signal: AbortSignal): void {
  const channel = new BroadcastChannel("berth.events");
  let position: number | undefined; // all up to it was seen
  let standing: Standing = { is: "connecting" };
  let leads = false;
  signal.addEventListener("abort", () => channel.close());

  const stand = (next: Standing) => {
    standing = next;
    handlers.standing(next);
    if (leads) post({ say: "standing", standing, position: position ?? 0 });
  };
  const post = (message: Message) => {
    if (!signal.aborted) channel.postMessage(message);
  };

  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    switch (data.say) {
      case "events":
        position = Math.max(position ?? 0, data.position);
        handlers.events(data.events);
        break;
      case "standing":
        position ??= data.position || undefined;
        standing = data.standing;
        handlers.standing(standing);
        break;
      case "lost":
        handlers.lost();
        break;
      case "hello":
        if (leads) post({ say: "standing", standing, position: position ?? 0 });
    }
  };
  post({ say: "hello" });

  const lead = async () => {
    leads = true;
    let pending: OrgEvent[] = [];
    let told = 0;
    const tell = () => {
      if (pending.length === 0) return;
      told = performance.now();
      const events = pending;
      pending = [];
      handlers.events(events);
      post({ say: "events", events, position: position ?? 0 });
    };
    let pause = firstPause;
    let since = Date.now();
    while (!signal.aborted) {
      let came = false;
      const why = await read(position, signal, {
        opened: () => {
          pause = firstPause;
          came = true;
          stand({ is: "live" });
        },
        position: (at) => (position = Math.max(position ?? 0, at)),
        event: (event) => {
          position = event.seq;
          if (pending.length === 0) setTimeout(tell, Math.max(0, told + gather - performance.now()));
          pending.push(event);
        },
      });
      tell();
      if (signal.aborted) return;
      if (why === "logged_out") return stand({ is: "logged_out" });
      if (why === "lost") {
        position = undefined;
        handlers.lost();
        post({ say: "lost" });
        continue;
      }
      if (came) since = Date.now();
      if (came && why === "ended") continue; // the service ends streams after minutes: nothing is wrong
      stand({ is: "stale", since, why });
      await rest(pause * (0.5 + Math.random() / 2), signal);
      pause = Math.min(pause * 2, maxPause);
    }
  };
  void navigator.locks.request("berth.events", { signal }, lead).catch(() => undefined); // aborted: the page closes
}

interface Reader {
  opened: () => void;
  position: (at: number) => void;
  event: (event: OrgEvent) => void;
}

/** Reads one stream to its end, and says why it ended. */
async function read(after: number | undefined, signal: AbortSignal, reader: Reader): Promise<string> {
  const url = new URL("/events", location.origin);
  url.searchParams.set("follow", "true");
  if (after === undefined) url.searchParams.set("from_now", "true");
  const dead = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => dead.abort(), silence);
  };
  try {
    alive();
    const answer = await fetch(url, {
      headers: { Accept: "text/event-stream", ...(after === undefined ? {} : { "Last-Event-ID": String(after) }) },
      signal: AbortSignal.any([signal, dead.signal]),
    });
    if (answer.status === 401) return "logged_out";
    if (answer.status === 410) return "lost";
    if (!answer.ok || !answer.body) return `the control plane answers ${answer.status}`;
    const parser = createParser({
      onEvent: ({ event, data }) => {
        if (event === "position") reader.position((JSON.parse(data) as { seq: number }).seq);
        else reader.event(JSON.parse(data) as OrgEvent);
      },
    });
    reader.opened();
    const text = answer.body.pipeThrough(new TextDecoderStream());
    for (const chunks = text.getReader(); ;) {
      const { done, value } = await chunks.read();
      if (done) return "ended";
      alive();
      parser.feed(value);
    }
  } catch {
    return dead.signal.aborted ? "the control plane is silent" : "the control plane cannot be reached";
  } finally {
    clearTimeout(timer);
  }
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    // Back in the foreground, or online: try at once.
    const now = () => {
      clearTimeout(timer);
      resolve();
    };
    window.addEventListener("online", now, { once: true, signal });
    signal.addEventListener("abort", now, { once: true });
  });
}
