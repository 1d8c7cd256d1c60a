/** What each broker should lead of `total` shards. */
export interface Shares {
  /** By broker; 0 on brokers that are not eligible. */
  readonly floor: Int32Array;
  readonly ceiling: Int32Array;
  /** By broker: the share before rounding. */
  readonly exact: Float64Array;
  /** All floors together, and how many brokers' ceilings are above theirs. */
  readonly whole: number;
  readonly open: number;
  /** A cap holds some broker below what its weight gives it. */
  readonly capped: boolean;
}

export interface ShareInput {
  /** By broker: 1 if it may lead. */
  readonly live: Uint8Array;
  readonly weight: Int32Array;
  /** By broker: the most it may lead. */
  readonly cap: Int32Array;
}

/**
 * `total` shared by weight: a broker whose cap holds fewer is counted at its cap, and the rest share what is
 * left (placement rule "Counting"). Where all caps together hold less than `total`, everyone is at its cap.
 */
export function shares(total: number, { live, weight, cap }: ShareInput): Shares {
  const n = live.length;
  const floor = new Int32Array(n);
  const ceiling = new Int32Array(n);
  const exact = new Float64Array(n);
  let rest: number[] = [];
  let weights = 0;
  for (let b = 0; b < n; b++) {
    if (live[b] === 0) continue;
    rest.push(b);
    weights += weight[b] ?? 0;
  }
  let left = total;
  let capped = false;
  for (let changed = true; changed;) {
    const over = rest.filter((b) => (cap[b] ?? 0) * weights < left * (weight[b] ?? 0));
    changed = over.length > 0;
    if (!changed) break;
    capped = true;
    for (const b of over) {
      const most = Math.max(0, cap[b] ?? 0);
      floor[b] = most;
      ceiling[b] = most;
      exact[b] = most;
      left -= most;
      weights -= weight[b] ?? 0;
    }
    rest = rest.filter((b) => !over.includes(b));
  }
  for (const b of rest) {
    const part = left * (weight[b] ?? 0);
    floor[b] = Math.floor(part / weights);
    ceiling[b] = Math.ceil(part / weights);
    exact[b] = part / weights;
  }
  const whole = floor.reduce((sum, n) => sum + n, 0);
  const open = ceiling.reduce((sum, n, b) => sum + (n > (floor[b] ?? 0) ? 1 : 0), 0);
  return { floor, ceiling, exact, whole, open, capped };
}
