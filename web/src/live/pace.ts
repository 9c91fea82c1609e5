// Decides how soon something is done again that events ask for: at once after a rest, and
// less often under a storm. Pure, apart from its clock.

/** So many times in a while, it is done as soon as it is asked for. */
const free = 5;
const lately = 3_000; // ms
/** The least time between two of them, in milliseconds: in rest, and under a storm. */
const apart = 50;
const storm = 700;

/** How long to wait, in milliseconds, after it was done at these times. */
export function waitOf(done: readonly number[], now: number): number {
  const last = done.at(-1);
  if (last === undefined) return 0;
  const calm = done.filter((at) => at > now - lately).length < free;
  return Math.max(0, last + (calm ? apart : storm) - now);
}

/** Does something soon after it is asked for, as often as `waitOf` allows. */
export class Pace {
  private done: number[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly act: () => void) {}

  ask(): void {
    this.timer ??= setTimeout(
      () => {
        this.timer = undefined;
        this.done = [...this.done, Date.now()].slice(-free);
        this.act();
      },
      waitOf(this.done, Date.now()),
    );
  }

  /** What was asked for is not done any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
