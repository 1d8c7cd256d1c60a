import type { View } from '../view.ts';
import type { LeadersDue } from './caps.ts';
import { CopyTargets } from './targets.ts';

export { conflicts } from './conflicts.ts';
export { resourceOutside } from './faults.ts';
export { Foresight, isNearLevel } from './foresight.ts';
export { dealFollowers } from './followers.ts';
export { copyThatGoes, surplusCopy } from './going.ts';
export { levelStep } from './level-step.ts';
export { restoreDestination, type Destination, type NoDestination } from './restore.ts';
export type { FollowerMove, Rejected, SlotCheck } from './step.ts';
export type { CopyTargets } from './targets.ts';
export { unspread } from './unspread.ts';
export { zoneFault } from './measure.ts';
export { totalsOutside, vectorTail, vectorTailAfter, type VectorTail } from './vector.ts';
export { zoneStep } from './zone-step.ts';
export { zonesAfter } from './zones.ts';

/**
 * What this pass aims at for copies. Built once all leaders of the pass are placed. `toLead`: how many shards of a resource
 * a broker is to lead; what it leads now where nothing else is said.
 */
export function copyTargets(
  view: View,
  toLead: LeadersDue = (r, b) => view.tally.leadersOf(r, b),
): CopyTargets {
  return new CopyTargets(view, toLead);
}
export { holdsTooMany } from './measure.ts';
