/** Data whose shape is wrong: a command like it is never proposed, and is fatal where it is found in the log. */
export class Malformed extends Error {
  constructor(path: string, message: string) {
    super(`${path}: ${message}`);
    this.name = 'Malformed';
  }
}

/**
 * Checked reading of one decoded map. `end` refuses every key that was not read, so that a field this version
 * does not know is never dropped silently.
 */
export class Fields {
  readonly path: string;
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #read: string[] = [];

  constructor(value: unknown, path: string) {
    this.path = path;
    if (!isPlainMap(value)) throw new Malformed(path, 'must be a map');
    this.#values = value;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#values, key);
  }

  take(key: string): unknown {
    if (!this.has(key)) throw new Malformed(this.#at(key), 'is missing');
    this.#read.push(key);
    return this.#values[key];
  }

  string(key: string): string {
    return asString(this.take(key), this.#at(key));
  }

  /** A safe integer, 0 or more: 64-bit values would lose digits silently. */
  integer(key: string): number {
    return asInteger(this.take(key), this.#at(key));
  }

  boolean(key: string): boolean {
    const value = this.take(key);
    if (typeof value !== 'boolean') throw new Malformed(this.#at(key), 'must be true or false');
    return value;
  }

  oneOf<T extends string>(key: string, allowed: readonly T[]): T {
    const value = this.take(key);
    const found = allowed.find((candidate) => candidate === value);
    if (found === undefined) throw new Malformed(this.#at(key), `must be one of ${allowed.join(', ')}`);
    return found;
  }

  nullable<T>(key: string, read: (key: string) => T): T | null {
    if (this.#values[key] !== null) return read(key);
    this.take(key);
    return null;
  }

  list<T>(key: string, read: (item: unknown, path: string) => T): T[] {
    const value = this.take(key);
    if (!Array.isArray(value)) throw new Malformed(this.#at(key), 'must be a list');
    return value.map((item, i) => read(item, `${this.#at(key)}[${i}]`));
  }

  strings(key: string): string[] {
    return this.list(key, asString);
  }

  /** A map of the keys' own choosing. */
  map<T>(key: string, read: (item: unknown, path: string) => T): Record<string, T> {
    const value = this.take(key);
    if (!isPlainMap(value)) throw new Malformed(this.#at(key), 'must be a map');
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, read(item, `${this.#at(key)}.${name}`)]),
    );
  }

  fields(key: string): Fields {
    return new Fields(this.take(key), this.#at(key));
  }

  /** Refuses every key that was not read. */
  end(): void {
    const keys = Object.keys(this.#values);
    if (keys.length === this.#read.length) return;
    const unknown = keys.find((key) => !this.#read.includes(key));
    if (unknown !== undefined) throw new Malformed(this.#at(unknown), 'is not a known field');
  }

  #at(key: string): string {
    return `${this.path}.${key}`;
  }
}

export function asString(value: unknown, path: string): string {
  if (typeof value !== 'string') throw new Malformed(path, 'must be a string');
  return value;
}

export function asInteger(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new Malformed(path, 'must be a whole number from 0 to 2^53 - 1');
  }
  return value;
}

function isPlainMap(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null)
  );
}
