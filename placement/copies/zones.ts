import type { View } from '../view.ts';

/** Zones that a set of copies spans. */
export function zonesAfter(view: View, copies: readonly number[]): number {
  const { zone } = view.brokers;
  let zones = 0;
  for (let i = 0; i < copies.length; i++) {
    const z = zone[copies[i] ?? 0];
    let first = true;
    for (let j = 0; j < i; j++) if (zone[copies[j] ?? 0] === z) first = false;
    if (first) zones++;
  }
  return zones;
}

/** Copies of a set in one zone. */
export function copiesIn(view: View, copies: readonly number[], zone: number): number {
  let count = 0;
  for (const b of copies) if (view.brokers.zone[b] === zone) count++;
  return count;
}
