/** What a table has under a key, whatever the key is: `constructor` and `__proto__` are in no table of ours. */
export const own = <T>(table: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;
