/** Maximum flow by shortest augmenting paths (Edmonds and Karp), with lower bounds: written for clarity, for tests only. */
export class Flow {
  readonly #to: number[] = [];
  readonly #left: number[] = [];
  readonly #out: number[][] = [];
  readonly #demand: number[] = [];

  node(): number {
    this.#out.push([]);
    this.#demand.push(0);
    return this.#out.length - 1;
  }

  edge(from: number, to: number, least: number, most: number): void {
    if (least > most) throw new Error(`an edge of at least ${least} and at most ${most}`);
    this.#demand[from] = (this.#demand[from] ?? 0) - least;
    this.#demand[to] = (this.#demand[to] ?? 0) + least;
    this.#add(from, to, most - least);
  }

  #add(from: number, to: number, most: number): void {
    this.#out[from]?.push(this.#to.length);
    this.#to.push(to);
    this.#left.push(most);
    this.#out[to]?.push(this.#to.length);
    this.#to.push(from);
    this.#left.push(0);
  }

  /** Is there a flow that keeps every bound, and what goes in comes out at every node but the two ends? */
  feasible(source: number, sink: number): boolean {
    this.#add(sink, source, Number.MAX_SAFE_INTEGER);
    const [from, into] = [this.node(), this.node()];
    let wanted = 0;
    for (const [node, demand] of [...this.#demand.entries()]) {
      if (demand > 0) {
        this.#add(from, node, demand);
        wanted += demand;
      } else if (demand < 0) this.#add(node, into, -demand);
    }
    return this.#maximum(from, into) === wanted;
  }

  #maximum(from: number, into: number): number {
    let sum = 0;
    for (;;) {
      const by = new Map<number, number>();
      const queue = [from];
      const seen = new Set(queue);
      while (queue.length > 0 && !seen.has(into)) {
        const at = queue.shift() ?? 0;
        for (const edge of this.#out[at] ?? []) {
          const to = this.#to[edge] ?? 0;
          if ((this.#left[edge] ?? 0) === 0 || seen.has(to)) continue;
          seen.add(to);
          by.set(to, edge);
          queue.push(to);
        }
      }
      if (!seen.has(into)) return sum;
      const path: number[] = [];
      for (let at = into; at !== from; at = this.#to[(path.at(-1) ?? 0) ^ 1] ?? 0) path.push(by.get(at) ?? 0);
      const add = Math.min(...path.map((edge) => this.#left[edge] ?? 0));
      for (const edge of path) {
        this.#left[edge] = (this.#left[edge] ?? 0) - add;
        this.#left[edge ^ 1] = (this.#left[edge ^ 1] ?? 0) + add;
      }
      sum += add;
    }
  }
}
