// Reads what many ask for one by one in few requests. Pure but for its timer.

/** Asks for things by their id: those that are asked for within `patience` ms are read together, at most `most` at once. */
export class Together<T> {
  private waiting = new Map<string, { take: (found: T | undefined) => void; fail: (error: unknown) => void }[]>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly read: (ids: string[]) => Promise<ReadonlyMap<string, T>>,
    private readonly most: number,
    private readonly patience: number,
  ) {}

  /** One of them; undefined when there is none of this id. */
  ask(id: string): Promise<T | undefined> {
    return new Promise((take, fail) => {
      const others = this.waiting.get(id) ?? [];
      this.waiting.set(id, [...others, { take, fail }]);
      if (this.waiting.size >= this.most) this.go();
      else this.timer ??= setTimeout(() => this.go(), this.patience);
    });
  }

  private go(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const asked = this.waiting;
    this.waiting = new Map();
    void this.read([...asked.keys()]).then(
      (found) => asked.forEach((all, id) => all.forEach(({ take }) => take(found.get(id)))),
      (error: unknown) => asked.forEach((all) => all.forEach(({ fail }) => fail(error))),
    );
  }
}
