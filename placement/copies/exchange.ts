import type { Field } from './field.ts';
import type { PairCounts } from './pairs.ts';

/** Exchanges that one resource's dealing may try, and that all of a pass may: shared by their shards. */
const MAX_TRIES = 400_000;
const MAX_TRIES_OF_PASS = 800_000;
/** Each row is held against so many that follow it. */
const REACH = 64;
const MAX_SWEEPS = 6;

/**
 * Evens out how many shards pairs of brokers share, by single exchanges of two followers in one zone between two sets
 * (the leader first in each): what every broker holds and every zone of every set stay as they are. Changes the sets
 * in place. Few rows on many brokers are left alone: their pairs cannot be even, only all resources' together.
 */
export function evenPairs(field: Field, sets: number[][], pairs: PairCounts, shardsInAll: number): void {
  const factor = sets[0]?.length ?? 0;
  if (factor < 2 || sets.length * factor < 2 * field.members.length) return;
  const part = sets.length / Math.max(sets.length, shardsInAll);
  let tries = Math.min(MAX_TRIES, Math.floor(MAX_TRIES_OF_PASS * part));
  for (let sweep = 0; sweep < MAX_SWEEPS; sweep++) {
    let changed = false;
    for (let i = 0; i < sets.length; i++) {
      for (let j = i + 1; j < Math.min(sets.length, i + 1 + REACH); j++) {
        tries -= (factor - 1) * (factor - 1);
        if (tries < 0) return;
        if (exchangeBest(field, sets[i] ?? [], sets[j] ?? [], pairs)) changed = true;
      }
    }
    if (!changed) return;
  }
}

/** Makes the first exchange between two sets that lowers the sum of squares. */
function exchangeBest(field: Field, a: number[], b: number[], pairs: PairCounts): boolean {
  for (let i = 1; i < a.length; i++) {
    const c = a[i] ?? 0;
    if (b.includes(c)) continue;
    for (let j = 1; j < b.length; j++) {
      const d = b[j] ?? 0;
      if (!alike(field, c, d)) continue;
      if (a.includes(d)) continue;
      if (tryExchange(a, i, b, j, pairs)) return true;
    }
  }
  return false;
}

/** May stand in for each other without a change of any zone's copies: same zone, or both alone in theirs. */
function alike(field: Field, c: number, d: number): boolean {
  const { zone } = field.brokers;
  const [x, y] = [zone[c] ?? 0, zone[d] ?? 0];
  return x === y || (field.size(x) === 1 && field.size(y) === 1);
}

function tryExchange(a: number[], i: number, b: number[], j: number, pairs: PairCounts): boolean {
  const c = a[i] ?? 0;
  const d = b[j] ?? 0;
  let change = pairs.bump(a, c, -1) + pairs.bump(b, d, -1);
  a[i] = d;
  b[j] = c;
  change += pairs.bump(a, d, 1) + pairs.bump(b, c, 1);
  if (change < 0) return true;
  pairs.bump(a, d, -1);
  pairs.bump(b, c, -1);
  a[i] = c;
  b[j] = d;
  pairs.bump(a, c, 1);
  pairs.bump(b, d, 1);
  return false;
}
