/**
 * Resources in which no copy could go from any of some givers to any of some takers: remembered while they stay as they were
 * and nobody gives or takes who did not the last time.
 */
export class BarrenResources {
  readonly #marks: Int32Array;
  #mark = 0;
  #ends: Uint8Array = new Uint8Array(0);

  constructor(resources: number) {
    this.#marks = new Int32Array(resources);
  }

  /** By broker: 1 if it gives, 2 if it takes, 3 if both. */
  begin(ends: Uint8Array): void {
    const known = this.#ends;
    this.#ends = ends;
    // Those marked for fewer ends than before are held against no more than these from here on.
    if (this.#mark === 0 || ends.some((end, b) => (end & ~(known[b] ?? 0)) !== 0)) this.#mark++;
  }

  has(r: number): boolean {
    return this.#marks[r] === this.#mark;
  }

  add(r: number): void {
    this.#marks[r] = this.#mark;
  }

  /** The resource has changed. */
  forget(r: number): void {
    this.#marks[r] = 0;
  }

  forgetAll(): void {
    this.#mark++;
  }
}
