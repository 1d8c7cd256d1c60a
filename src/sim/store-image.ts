import type { StoreOperation } from '../disk.ts';
import type { SimRandom } from './random.ts';

/** Writes that can be taken back. */
const MAX_UNDOS = 64;

/** An ordered key-value map, keys ordered bytewise: a LevelDB's contents. Values are never changed in place. */
export class SimStoreImage {
  /** Keys as Latin-1 strings, sorted: one UTF-16 unit a byte keeps the order. */
  #keys: string[] = [];
  #values = new Map<string, Uint8Array>();
  /** What takes each of the newest writes back, oldest first. */
  #undos: StoreOperation[][] = [];

  get size(): number {
    return this.#keys.length;
  }

  get(key: Uint8Array): Uint8Array | null {
    return this.#values.get(latin1(key))?.slice() ?? null;
  }

  range(options: { gte: Uint8Array; lt: Uint8Array; limit: number }): [Uint8Array, Uint8Array][] {
    const out: [Uint8Array, Uint8Array][] = [];
    const lt = latin1(options.lt);
    for (let at = this.#find(latin1(options.gte)); out.length < options.limit; at++) {
      const key = this.#keys[at];
      if (key === undefined || key >= lt) break;
      out.push([new Uint8Array(Buffer.from(key, 'latin1')), (this.#values.get(key) as Uint8Array).slice()]);
    }
    return out;
  }

  apply(operations: readonly StoreOperation[]): void {
    const undo: StoreOperation[] = [];
    for (const operation of operations) {
      const key = latin1(operation.key);
      const before = this.#values.get(key);
      undo.push(
        before === undefined
          ? { type: 'delete', key: operation.key }
          : { type: 'put', key: operation.key, value: before },
      );
      if (operation.type === 'put') {
        if (!this.#values.has(key)) this.#keys.splice(this.#find(key), 0, key);
        this.#values.set(key, operation.value);
      } else if (this.#values.delete(key)) {
        this.#keys.splice(this.#find(key), 1);
      }
    }
    this.#undos.push(undo.reverse());
    if (this.#undos.length > MAX_UNDOS) this.#undos = this.#undos.slice(-MAX_UNDOS / 2);
  }

  /** Takes the newest writes back, up to so many; false where none is known. */
  undo(writes: number): boolean {
    const undos = this.#undos.slice(-writes);
    for (const operations of undos.reverse()) this.apply(operations);
    this.#undos = [];
    return undos.length > 0;
  }

  copy(): SimStoreImage {
    const twin = new SimStoreImage();
    twin.#keys = [...this.#keys];
    twin.#values = new Map(this.#values);
    return twin;
  }

  /** One bit of one value, by chance; false where every value is empty. */
  flipBit(random: SimRandom): boolean {
    const full = this.#keys.filter((key) => (this.#values.get(key) as Uint8Array).length > 0);
    if (full.length === 0) return false;
    const key = random.pick(full);
    const value = (this.#values.get(key) as Uint8Array).slice();
    const at = random.below(value.length);
    value[at] = (value[at] as number) ^ (1 << random.below(8));
    this.#values.set(key, value);
    return true;
  }

  /** Where the key is or would be. */
  #find(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function latin1(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1');
}
