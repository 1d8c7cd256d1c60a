import type { SimAction, SimPlan } from './plan.ts';

/** A fault that lasts less is short enough. */
const SHORTEST_MS = 50;

/**
 * Makes a failing plan small: drops actions and operations, then shortens what is left, as long as it still
 * fails in the same way. Delta debugging (Zeller and Hildebrandt) by halves, quarters, … of each list.
 */
export async function shrinkPlan(
  plan: SimPlan,
  fails: (candidate: SimPlan) => Promise<boolean>,
  onProgress: (plan: SimPlan) => void = () => {},
): Promise<SimPlan> {
  let best = plan;
  const take = async (candidate: SimPlan): Promise<boolean> => {
    if (!(await fails(candidate))) return false;
    best = candidate;
    onProgress(best);
    return true;
  };
  let size = -1;
  while (size !== sizeOf(best)) {
    size = sizeOf(best);
    await shrinkList(best.actions, (actions) => take({ ...best, actions }));
    await shrinkList(best.operations, (operations) => take({ ...best, operations }));
    await take({ ...best, core: best.members, outsiders: 'healed' });
    await take({ ...best, settings: { ...best.settings, driftPart: {}, wallOffsetMs: {} } });
    await shrinkTimes(best.actions, (actions) => take({ ...best, actions }));
  }
  return best;
}

function sizeOf(plan: SimPlan): number {
  return plan.actions.length + plan.operations.length;
}

/** Drops ever smaller runs of a list while `take` agrees. */
async function shrinkList<T>(
  given: readonly T[],
  take: (list: readonly T[]) => Promise<boolean>,
): Promise<void> {
  let list = given;
  for (let run = Math.ceil(list.length / 2); run >= 1; run = run === 1 ? 0 : Math.ceil(run / 2)) {
    for (let at = 0; at < list.length;) {
      const shorter = [...list.slice(0, at), ...list.slice(at + run)];
      if (await take(shorter)) list = shorter;
      else at += run;
    }
  }
}

/** Halves how long each fault lasts. */
async function shrinkTimes(
  given: readonly SimAction[],
  take: (actions: readonly SimAction[]) => Promise<boolean>,
): Promise<void> {
  let actions = given;
  for (let at = 0; at < actions.length; at++) {
    for (;;) {
      const action = actions[at] as SimAction;
      if (!('forMs' in action) || action.forMs < SHORTEST_MS) break;
      const shorter = actions.with(at, { ...action, forMs: Math.round(action.forMs / 2) });
      if (!(await take(shorter))) break;
      actions = shorter;
    }
  }
}
