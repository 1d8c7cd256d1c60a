/** One group of rows (led from one zone) or of brokers (one zone, or all lone brokers together). */
export interface QuotaGroup {
  /** Rows led from it. */
  readonly rows: number;
  /** Seats of followers in it. */
  readonly seats: number;
  /** Followers that one row may take from it, led from elsewhere. */
  readonly least: number;
  readonly most: number;
}

/** Rounds of fitting; few rows, or many groups, need less of it. */
const ROUNDS = 24;
const FEW_ROUNDS = 4;
const FEW_ROWS = 64;
const MANY_GROUPS = 16;
/** Quotas are in units of 2^-20 of a follower. */
export const QUOTA_UNIT = 2 ** 20;

/**
 * How many followers a row led from group `i` takes from group `j` on average, at `[i * groups + j]`: as even as
 * the bounds allow, so that a leader's followers spread over all zones that can hold them. Rows and columns are
 * brought to their sums in turn (iterative proportional fitting, R. Sinkhorn 1964) and cut to their bounds. The
 * result only guides: what a row may and must take is decided exactly, row by row. Sums, products and quotients of
 * doubles are the same on every machine.
 */
export function quotas(
  groups: readonly QuotaGroup[],
  { followers, rows }: { readonly followers: number; readonly rows: number },
): Float64Array {
  const n = groups.length;
  const x = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) x[i * n + j] = bounded(groups, i, j, groups[j]?.seats ?? 0);
  }
  const rounds = rows <= FEW_ROWS || n > MANY_GROUPS ? FEW_ROUNDS : ROUNDS;
  for (let round = 0; round < rounds; round++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += (x[i * n + j] ?? 0) * (groups[i]?.rows ?? 0);
      if (sum > 0) scale(x, groups, (groups[j]?.seats ?? 0) / sum, { from: j, step: n });
    }
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let j = 0; j < n; j++) sum += x[i * n + j] ?? 0;
      if (sum > 0) scale(x, groups, followers / sum, { from: i * n, step: 1 });
    }
  }
  return x.map((value) => Math.floor(value * QUOTA_UNIT));
}

function scale(
  x: Float64Array,
  groups: readonly QuotaGroup[],
  by: number,
  line: { from: number; step: number },
): void {
  const n = groups.length;
  for (let k = 0; k < n; k++) {
    const at = line.from + k * line.step;
    x[at] = bounded(groups, Math.floor(at / n), at % n, (x[at] ?? 0) * by);
  }
}

function bounded(groups: readonly QuotaGroup[], i: number, j: number, value: number): number {
  const group = groups[j];
  if (group === undefined) return 0;
  const own = i === j ? 1 : 0;
  return Math.max(Math.max(0, group.least - own), Math.min(Math.max(0, group.most - own), value));
}
