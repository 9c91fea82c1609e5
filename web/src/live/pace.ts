// Decides how soon something is done again that events ask for: at once after a rest, and
// less often under a storm. Pure, apart from its clock.

/** It is done as soon as it is asked for, unless it was done so many times within so many milliseconds: a burst, a storm. */
const bounds = [
  { times: 8, within: 1_500 },
  { times: 30, within: 20_000 },
];
/** The least time between two of them, in milliseconds: in rest, and beyond a bound. */
const apart = 50;
const slowly = 700;

/** How long to wait, in milliseconds, after it was done at these times. */
export function waitOf(done: readonly number[], now: number): number {
  const last = done.at(-1);
  if (last === undefined) return 0;
  const calm = bounds.every(({ times, within }) => done.filter((at) => at > now - within).length < times);
  return Math.max(0, last + (calm ? apart : slowly) - now);
}

const kept = Math.max(...bounds.map((b) => b.times));

/** Does something soon after it is asked for, as often as `waitOf` allows. */
export class Pace {
  private done: number[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly act: () => void) {}

  ask(): void {
    this.timer ??= setTimeout(
      () => {
        this.timer = undefined;
        this.done = [...this.done, performance.now()].slice(-kept);
        this.act();
      },
      waitOf(this.done, performance.now()),
    );
  }

  /** What was asked for is not done any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
