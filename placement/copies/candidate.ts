import type { CopyTargets } from './targets.ts';

/** How good a candidate is: compared from the left, smaller first. */
export interface Candidate {
  readonly shard: number;
  readonly from: number;
  readonly to: number;
  readonly key: readonly number[];
}

export function better(targets: CopyTargets, a: Candidate, b: Candidate | null): boolean {
  if (b === null) return true;
  for (let i = 0; i < a.key.length; i++) {
    const difference = (a.key[i] ?? 0) - (b.key[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  if (a.shard !== b.shard) {
    // Which shard wants the move most: the very one that went this way is the last to be sent back.
    const difference = pull(targets, a) - pull(targets, b);
    return difference === 0 ? a.shard < b.shard : difference > 0;
  }
  if (a.to !== b.to) return targets.ranking(a.shard).compare(a.to, b.to) < 0;
  return targets.ranking(a.shard).compare(a.from, b.from) > 0;
}

/** By how much a shard scores higher on the broker it would go to than on the one it would leave. */
function pull(targets: CopyTargets, { shard, from, to }: Candidate): number {
  const ranking = targets.ranking(shard);
  return ranking.high(to) - ranking.high(from);
}
