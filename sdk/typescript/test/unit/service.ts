import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { Berth, type Options } from "@berth/client";

/** What must be seen by the control plane alone. */
export const token = "brt_canary_7d1f0e5c";

/** Answers over real HTTP until the test ends; what it answers is the test's. */
export async function service(t: TestContext, handler: (req: IncomingMessage, res: ServerResponse, body: string) => void): Promise<string> {
  const server = createServer((req, res) => {
    const parts: Buffer[] = [];
    req.on("data", (part: Buffer) => parts.push(part));
    req.on("end", () => handler(req, res, Buffer.concat(parts).toString()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function client(url: string, options: Partial<Options> = {}): Berth {
  return new Berth({ url, token, patienceMs: 5_000, ...options });
}

export function reply(res: ServerResponse, status: number, body: unknown = "", headers: Record<string, string> = {}): void {
  const kind = status < 400 ? "application/json" : "application/problem+json";
  res.writeHead(status, { "Content-Type": kind, ...headers });
  res.end(typeof body === "string" ? body : JSON.stringify(body));
}

/** What a promise is rejected with. */
export async function failure(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error("it did not fail");
}
