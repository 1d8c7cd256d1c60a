import type { View } from '../view.ts';
import { CopyTargets } from './targets.ts';

export { dealFollowers } from './followers.ts';
export { finishDealing } from './finish.ts';
export { zonesAfter } from './zones.ts';
export type { CopyTargets } from './targets.ts';

/** What this pass aims at for copies. Built once all leaders of the pass are placed. */
export function copyTargets(view: View): CopyTargets {
  return new CopyTargets(view);
}
