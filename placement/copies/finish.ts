import type { View } from '../view.ts';
import type { CopyTargets } from './targets.ts';
export function finishDealing(view: View, targets: CopyTargets): void {
  void view;
  void targets;
}
