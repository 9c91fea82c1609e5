import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, expect, test } from "vitest";
import type { Key } from "~/api/client";
import type { OrgEvent } from "./affects";
import { Refresh } from "./refresh";

const labelled: OrgEvent = { seq: 1, kind: "install.updated", install_id: "acme", body: {} };

/** An install on a page, whose answers come when the test says so. */
function shown() {
  const cache = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: 60_000 } } });
  const queryKey: Key = ["/installs/{install}", { path: { install: "acme" } }];
  const asked: { answer: (label: string) => void; fail: () => void }[] = [];
  const query = {
    queryKey,
    queryFn: () => new Promise<string>((answer, fail) => asked.push({ answer, fail: () => fail(new Error("away")) })),
  };
  const refresh = new Refresh(cache);
  const leave = new QueryObserver(cache, query).subscribe(() => undefined);
  ends.push(
    leave,
    () => refresh.end(),
    () => cache.clear(),
  );
  return { cache, refresh, asked, leave, now: () => cache.getQueryState<string>(queryKey)! };
}

const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** Lets everything happen that waits for nobody. */
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

test("what an event makes old is read again", async () => {
  const { refresh, asked, now } = shown();
  asked[0]!.answer("before");
  await soon();
  refresh.events([{ ...labelled, install_id: "other" }]);
  expect(asked).toHaveLength(1);
  refresh.events([labelled]);
  expect(asked).toHaveLength(2);
  asked[1]!.answer("after");
  await soon();
  expect(now().data).toBe("after");
});

test("an event during the first read loses nothing", async () => {
  const { refresh, asked, now } = shown();
  refresh.events([labelled]);
  asked[0]!.answer("before");
  await soon();
  expect(asked).toHaveLength(2);
  asked[1]!.answer("after");
  await soon();
  expect(now().data).toBe("after");
  expect(asked).toHaveLength(2);
});

test("under a storm slow answers come, and the last event is seen", async () => {
  const { refresh, asked, now } = shown();
  for (let i = 0; i < 5; i++) {
    for (let j = 0; j < 10; j++) refresh.events([labelled]);
    expect(asked).toHaveLength(i + 1); // not broken off
    asked[i]!.answer(`answer ${i}`);
    await soon();
    expect(now().data).toBe(`answer ${i}`);
  }
  asked[5]!.answer("last");
  await soon();
  expect(now()).toMatchObject({ data: "last", fetchStatus: "idle" });
  expect(asked).toHaveLength(6);
});

test("what fails while an event comes is read once more", async () => {
  const { refresh, asked, now } = shown();
  refresh.events([labelled]);
  asked[0]!.fail();
  await soon();
  asked[1]!.answer("after");
  await soon();
  expect(now()).toMatchObject({ data: "after", status: "success" });
});

test("what nobody looks at is read when somebody does", async () => {
  const { cache, refresh, asked, leave, now } = shown();
  refresh.events([labelled]);
  leave();
  asked[0]!.answer("before");
  await soon();
  expect(asked).toHaveLength(1);
  expect(now().isInvalidated).toBe(true);
  expect(cache.isFetching()).toBe(0);
});

test("when the stream is back, what failed and what still waits is read again", async () => {
  const { refresh, asked, now } = shown();
  asked[0]!.answer("before");
  await soon();
  refresh.all();
  refresh.back(); // the first question may wait for ever
  expect(asked).toHaveLength(3);
  asked[2]!.fail();
  await soon();
  expect(now().status).toBe("error");
  refresh.back();
  asked[3]!.answer("after");
  await soon();
  expect(now()).toMatchObject({ data: "after", status: "success" });
});
