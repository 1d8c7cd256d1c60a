import type { SimAction, SimSettings } from './plan.ts';
import type { SimRandom } from './random.ts';

/** The group forms and clients begin before the first fault. */
const CALM_MS = 3_000;
export const FAULTS_END_MS = 48_000;
/** Registers, each a resource of its own. */
export const KEYS = ['k1', 'k2', 'k3', 'k4', 'k5'] as const;

/** Makes one action of a kind. */
export type Maker = (context: Context) => SimAction;

/** Makes one action that befalls brokers. */
export type BrokerMaker = (context: Context, brokers: readonly string[]) => SimAction;

export interface Context {
  readonly random: SimRandom;
  readonly members: readonly string[];
  readonly atMs: number;
  readonly electionTimeoutMs: number;
}

/** A kind's actions over a run: how often first, then when and what. */
export function drawActions(
  random: SimRandom,
  make: Maker,
  members: readonly string[],
  settings: SimSettings,
): SimAction[] {
  // Two to twenty-five of a kind a run.
  const everyMs = Math.exp(random.between(Math.log(1_800), Math.log(20_000)));
  const actions: SimAction[] = [];
  let atMs = CALM_MS;
  for (;;) {
    atMs += -Math.log(1 - random.unit()) * everyMs;
    if (atMs >= FAULTS_END_MS) return actions;
    const { electionTimeoutMs } = settings;
    actions.push(make({ random, members, atMs: Math.round(atMs), electionTimeoutMs }));
  }
}
