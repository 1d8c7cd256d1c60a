import type { View } from '../view.ts';

/** One number a resource, and their sum: counted when asked for, and again only for resources that have changed since. */
export class Counted {
  readonly #view: View;
  readonly #count: (r: number) => number;
  readonly #values: Float64Array;
  /** By resource: the version of its tally that it was counted at. */
  readonly #version: Int32Array;
  #changes = -1;
  #sum = 0;

  constructor(view: View, count: (r: number) => number) {
    this.#view = view;
    this.#count = count;
    this.#values = new Float64Array(view.resourceCount);
    this.#version = new Int32Array(view.resourceCount).fill(-1);
  }

  get sum(): number {
    this.catchUp();
    return this.#sum;
  }

  of(r: number): number {
    this.catchUp();
    return this.#values[r] ?? 0;
  }

  catchUp(): void {
    const { changes, versions } = this.#view.tally;
    if (changes === this.#changes) return;
    this.#changes = changes;
    for (let r = 0; r < versions.length; r++) {
      const version = versions[r] ?? 0;
      if (version === this.#version[r]) continue;
      this.#version[r] = version;
      const value = this.#count(r);
      this.#sum += value - (this.#values[r] ?? 0);
      this.#values[r] = value;
    }
  }
}
