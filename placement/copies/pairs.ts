/** A leader's followers weigh more than who else shares a shard: they are who takes over. */
const FOLLOWER_WEIGHT = 3;

/** How often each broker follows each leader, and how many shards each two brokers share. */
export class PairCounts {
  readonly brokers: number;
  /** At `leader * brokers + broker`. */
  readonly follows: Int32Array;
  /** At `a * brokers + b` and `b * brokers + a`. */
  readonly shares: Int32Array;

  constructor(brokers: number) {
    this.brokers = brokers;
    this.follows = new Int32Array(brokers * brokers);
    this.shares = new Int32Array(brokers * brokers);
  }

  /** Shards that a broker shares with the followers among the first `size` of a set, added up. */
  sharesWith(set: readonly number[], size: number, b: number): number {
    let sum = 0;
    for (let i = 1; i < size; i++) sum += this.shares[(set[i] ?? 0) * this.brokers + b] ?? 0;
    return sum;
  }

  /** Counts one follower in (or out) of a set, its leader first. Answers by how much the sum of squares changes. */
  bump(set: readonly number[], follower: number, by: 1 | -1): number {
    const n = this.brokers;
    const leader = set[0] ?? 0;
    const follows = leader * n + follower;
    let change = FOLLOWER_WEIGHT * squareChange(this.follows, follows, by);
    for (const b of set) {
      if (b === follower) continue;
      change += squareChange(this.shares, b * n + follower, by);
      this.shares[follower * n + b] = this.shares[b * n + follower] ?? 0;
    }
    return change;
  }

  /** Counts a set, its leader first. */
  add(set: readonly number[]): void {
    const n = this.brokers;
    for (let i = 0; i < set.length; i++) {
      const a = set[i] ?? 0;
      for (let j = i + 1; j < set.length; j++) {
        const b = set[j] ?? 0;
        const [there, back] = [a * n + b, b * n + a];
        if (i === 0) this.follows[there] = (this.follows[there] ?? 0) + 1;
        this.shares[there] = (this.shares[there] ?? 0) + 1;
        this.shares[back] = (this.shares[back] ?? 0) + 1;
      }
    }
  }
}

function squareChange(counts: Int32Array, at: number, by: 1 | -1): number {
  const before = counts[at] ?? 0;
  counts[at] = before + by;
  return 2 * before * by + 1;
}
