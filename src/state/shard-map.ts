/** What readers see of what is kept by shard. */
export interface ShardRows<Row> {
  readonly size: number;
  get(shard: string): Row | undefined;
  has(shard: string): boolean;
  /** All of them as they are now, a resource's together and in the order of their numbers; a list of the caller's own. */
  list(): Row[];
}

/** A shard's number is below it: as many as a resource may have. */
export const SHARD_NUMBERS = 100_000;

/**
 * Values by shard, held as shards are named: for each resource a list, by number. A `Map` of a million keys moves every one
 * of them, tens of milliseconds long, whenever it grows; here the largest map is that of the resources. `undefined` is no value.
 */
export class ShardMap<Value> implements ShardRows<Value> {
  /** By resource, none of them empty, none ending with a gap. */
  readonly #lists = new Map<string, (Value | undefined)[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(shard: string): Value | undefined {
    const slash = shard.lastIndexOf('/');
    return this.#lists.get(shard.slice(0, slash))?.[numberAfter(shard, slash)];
  }

  has(shard: string): boolean {
    return this.get(shard) !== undefined;
  }

  set(shard: string, value: Value): void {
    const slash = shard.lastIndexOf('/');
    const number = numberAfter(shard, slash);
    if (number < 0) throw new Error(`"${shard}" does not name a shard`);
    const resource = shard.slice(0, slash);
    let values = this.#lists.get(resource);
    if (values === undefined) this.#lists.set(resource, (values = []));
    if (values[number] === undefined) this.#size += 1;
    // One by one: an assignment far behind the end would make a slow dictionary of the list.
    while (values.length <= number) values.push(undefined);
    values[number] = value;
  }

  delete(shard: string): void {
    const slash = shard.lastIndexOf('/');
    const number = numberAfter(shard, slash);
    const resource = shard.slice(0, slash);
    const values = this.#lists.get(resource);
    if (values?.[number] === undefined) return;
    this.#size -= 1;
    values[number] = undefined;
    while (values.length > 0 && values.at(-1) === undefined) values.pop();
    if (values.length === 0) this.#lists.delete(resource);
  }

  list(): Value[] {
    const all = new Array<Value>(this.#size);
    let at = 0;
    for (const values of this.#lists.values()) at = fill(all, at, values);
    return all;
  }

  /** The list of the `size` values that there were, where `before` says of each shard written since what it had; `null`: none. */
  listBefore(before: ShardMap<Value | null>, size: number): Value[] {
    const all = new Array<Value>(size);
    let at = 0;
    for (const [resource, values] of this.#lists) {
      const written = before.#lists.get(resource);
      at = fill(all, at, written === undefined ? values : overwritten(values, written));
    }
    for (const [resource, written] of before.#lists) {
      if (!this.#lists.has(resource)) at = fill(all, at, overwritten([], written));
    }
    return all;
  }
}

/** Answers where the next value goes. */
function fill<Value>(all: Value[], from: number, values: readonly (Value | undefined)[]): number {
  let at = from;
  for (const value of values) if (value !== undefined) all[at++] = value;
  return at;
}

function overwritten<Value>(
  values: readonly (Value | undefined)[],
  written: readonly (Value | null | undefined)[],
): (Value | undefined)[] {
  const length = Math.max(values.length, written.length);
  return Array.from({ length }, (_, number) => {
    const value = written[number];
    return value === undefined ? values[number] : (value ?? undefined);
  });
}

/** The number after the slash, written as shards' numbers are; -1: there is none. */
function numberAfter(shard: string, slash: number): number {
  const first = slash + 1;
  if (slash < 0 || first === shard.length) return -1;
  let number = 0;
  for (let at = first; at < shard.length; at++) {
    const digit = shard.charCodeAt(at) - ZERO;
    if (!(digit >= 0 && digit <= 9)) return -1;
    number = number * 10 + digit;
    if (number >= SHARD_NUMBERS) return -1;
  }
  return shard.charCodeAt(first) === ZERO && first + 1 < shard.length ? -1 : number;
}

const ZERO = '0'.charCodeAt(0);
