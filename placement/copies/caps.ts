import { NO_CAP } from '../broker-table.ts';
import type { View } from '../view.ts';
import type { Field } from './field.ts';
import type { ResourceTarget } from './targets.ts';

/** Demands are compared in units of 2^-10 of a copy. */
const UNIT = 1024;
/** Rounds of `splitCaps`; each but the last finds another broker full. */
const MAX_ROUNDS = 8;

/** By resource: its part of every capped broker's cap, by place in `field.capped`; `null`: no cap binds. */
export type CapParts = readonly Int32Array[] | null;

export interface SplitInput {
  /** How many of a resource's leaderships a broker is to have: the parts must not change as they arrive. */
  readonly toLead: LeadersDue;
  readonly build: (r: number, room: Int32Array | null) => ResourceTarget;
}

/** Shards of a resource that a broker is to lead. */
export type LeadersDue = (r: number, b: number) => number;

/**
 * Splits the caps over the resources, by what each would put on a capped broker: the parts of a full broker's cap
 * are as its demands, and what is cut off asks the other brokers, which may fill them too. The parts do not depend
 * on where copies lie now: with parts of "the room there is" two resources would draw each other back and forth.
 */
export function splitCaps(view: View, field: Field, { toLead, build }: SplitInput): CapParts {
  const caps = capsLeft(view, field);
  const full = new Uint8Array(caps.length);
  let parts: Int32Array[] | null = null;
  for (let round = 0; ; round++) {
    const targets = Array.from({ length: view.resourceCount }, (_, r) => build(r, parts?.[r] ?? null));
    let more = false;
    for (let i = 0; i < caps.length; i++) {
      if (full[i] === 1) continue;
      const b = field.capped[i] ?? 0;
      const demands = targets.map((target) => demandOf(target, b));
      const sum = demands.reduce((a, d) => a + d, 0);
      if (sum <= (caps[i] ?? 0) * UNIT && round < MAX_ROUNDS) continue;
      full[i] = 1;
      more = true;
      parts ??= targets.map(() => new Int32Array(caps.length).fill(NO_CAP));
      split(view, b, { demands, sum, cap: caps[i] ?? 0, toLead }).forEach((part, r) => {
        const row = parts?.[r];
        if (row !== undefined) row[i] = part;
      });
    }
    if (!more) return parts;
  }
}

/** Caps less the copies of shards that do not count: those stay where they are. */
function capsLeft(view: View, field: Field): Int32Array {
  const idle = new Int32Array(view.brokers.count);
  for (let s = 0; s < view.shardCount; s++) {
    if (view.counts[s] === 1) continue;
    for (const b of view.copies(s)) idle[b] = (idle[b] ?? 0) + 1;
  }
  return field.capped.map((b) => Math.max(0, (view.brokers.cap[b] ?? 0) - (idle[b] ?? 0)));
}

function demandOf(target: ResourceTarget, b: number): number {
  const { share } = target;
  return share.floor(b) * UNIT + Math.floor((share.remainder(b) * UNIT) / share.denominator(b));
}

/** One cap in whole copies: by demand, no resource below what it leads there or is to lead, the largest remainders first. */
function split(
  view: View,
  b: number,
  want: Pick<SplitInput, 'toLead'> & {
    readonly demands: readonly number[];
    readonly sum: number;
    readonly cap: number;
  },
): Int32Array {
  const { demands, sum, cap, toLead } = want;
  const quotas = demands.map((d) => (sum === 0 ? 0 : Math.floor((d * cap) / sum)));
  const exact = demands.map((d) => (sum === 0 ? 0 : Math.floor((d * cap) / Math.max(1, sum / UNIT))));
  const led = demands.map((_, r) => Math.max(view.tally.leadersOf(r, b), toLead(r, b)));
  const parts = Int32Array.from(quotas, (q, r) => Math.max(q, led[r] ?? 0));
  let left = cap - parts.reduce((a, n) => a + n, 0);
  const above = (r: number): number => (parts[r] ?? 0) * UNIT - (exact[r] ?? 0);
  const order = Array.from(parts.keys()).sort((a, c) => above(a) - above(c) || a - c);
  for (const r of order) {
    if (left <= 0) break;
    if ((demands[r] ?? 0) <= (parts[r] ?? 0) * UNIT) continue;
    parts[r] = (parts[r] ?? 0) + 1;
    left--;
  }
  for (const r of order.reverse()) {
    for (; left < 0 && (parts[r] ?? 0) > (led[r] ?? 0); left++) parts[r] = (parts[r] ?? 0) - 1;
  }
  return parts;
}
