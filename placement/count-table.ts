/**
 * Numbers of one block at most, unless a row has more: a MiB. One block of 10,000 resources by 1,000 brokers takes the
 * kernel 6 to 16 ms to take back, and no other thread of the process is given memory meanwhile.
 */
const BLOCK_NUMBERS = 2 ** 18;

/** A count for every row and column, zero at first; in blocks, of memory outside the heap. */
export class CountTable {
  readonly #columns: number;
  /** Rows of a block, as a power of two. */
  readonly #shift: number;
  readonly #mask: number;
  readonly #blocks: Int32Array[] = [];

  constructor(rows: number, columns: number) {
    this.#columns = columns;
    this.#shift = Math.max(0, Math.floor(Math.log2(BLOCK_NUMBERS / Math.max(1, columns))));
    const most = 2 ** this.#shift;
    this.#mask = most - 1;
    for (let left = rows; left > 0; left -= most)
      this.#blocks.push(new Int32Array(Math.min(left, most) * columns));
  }

  at(row: number, column: number): number {
    return this.#blocks[row >> this.#shift]?.[(row & this.#mask) * this.#columns + column] ?? 0;
  }

  add(row: number, column: number, by: number): void {
    const block = this.#blocks[row >> this.#shift];
    const at = (row & this.#mask) * this.#columns + column;
    if (block !== undefined) block[at] = (block[at] ?? 0) + by;
  }

  /** A live window into the table. */
  row(row: number): Int32Array {
    const from = (row & this.#mask) * this.#columns;
    return this.#blocks[row >> this.#shift]?.subarray(from, from + this.#columns) ?? new Int32Array(0);
  }
}
