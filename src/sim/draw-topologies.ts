import { FAULTS_END_MS } from './draw-actions.ts';
import type { SimAction, SimSettings, TopologyAction } from './plan.ts';
import { SimRandom } from './random.ts';

/** One in so many seeds has a topology among its other faults. */
const SEEDS_PER_TOPOLOGY = 8;
const FIRST_AT_MS = 6_000;
/** Longer than the group may be without a leader: elections that never end show. */
const MIN_LAST_MS = 16_000;
const MAX_LAST_MS = 36_000;
/** Between two, the group is whole. */
const REST_MS = 3_000;
/** The largest still counts as a link that is well. */
const DELAYS_MS = [0, 0, 25, 45];
/** Between two breaks, so many election time-outs pass. */
const FLAP_ELECTIONS = 3;
const LARGEST_ID_PART = 0.75;

interface Context {
  readonly random: SimRandom;
  readonly members: readonly string[];
  readonly atMs: number;
  readonly forMs: number;
  readonly electionTimeoutMs: number;
}

export interface TopologyPart {
  readonly faults: readonly string[];
  readonly actions: readonly TopologyAction[];
}

/** Among those that ask for votes at the same time, the largest id is the one that others make wait. */
function drawCenter({ random, members }: Context): string {
  return random.chance(LARGEST_ID_PART) ? (members.at(-1) as string) : random.pick(members);
}

function around(c: Context, center: string, sides: readonly (readonly string[])[]): TopologyAction {
  // Of three, a single one would be left beside the center.
  const killsLeader = c.members.length > 3 && c.random.chance(0.7);
  const delayMs = c.random.pick(DELAYS_MS);
  return { type: 'center', atMs: c.atMs, center, sides, killsLeader, delayMs, forMs: c.forMs };
}

const MAKERS: Readonly<Record<string, (context: Context) => TopologyAction>> = {
  lastingStar: (c) => {
    const center = drawCenter(c);
    const sides = c.members.filter((id) => id !== center).map((id) => [id]);
    return around(c, center, sides);
  },
  lastingBridge: (c) => {
    const center = drawCenter(c);
    const rest = c.random.shuffle(c.members.filter((id) => id !== center));
    const half = Math.ceil(rest.length / 2);
    return around(c, center, [rest.slice(0, half), rest.slice(half)]);
  },
  flappingLeader: (c) => ({
    type: 'flap',
    atMs: c.atMs,
    bothWays: c.random.chance(0.25),
    breakMs: c.random.pick([20, 50, 50]),
    everyMs: FLAP_ELECTIONS * c.electionTimeoutMs,
    forMs: c.forMs,
  }),
};

/** Every kind of lasting topology. */
export const TOPOLOGIES: readonly string[] = Object.keys(MAKERS);

/** Topologies of a plan that last for many elections. From a stream of its own: the rest of the plan stays as it is without them. */
export function drawTopologies(
  seed: number,
  members: readonly string[],
  { electionTimeoutMs }: SimSettings,
  only?: readonly string[],
): TopologyPart {
  const random = new SimRandom(seed, 'topologies');
  const isDrawn = only === undefined && random.below(SEEDS_PER_TOPOLOGY) === 0;
  const kinds = isDrawn ? [random.pick(TOPOLOGIES)] : (only ?? []).filter((kind) => kind in MAKERS);
  const actions: TopologyAction[] = [];
  if (kinds.length === 0) return { faults: [], actions };
  for (let atMs = FIRST_AT_MS; ;) {
    const forMs = Math.round(random.between(MIN_LAST_MS, MAX_LAST_MS));
    if (atMs + forMs > FAULTS_END_MS) return { faults: kinds, actions };
    const make = MAKERS[random.pick(kinds)] as (context: Context) => TopologyAction;
    actions.push(make({ random, members, atMs, forMs, electionTimeoutMs }));
    if (isDrawn) return { faults: kinds, actions };
    atMs += forMs + REST_MS;
  }
}

/** Other faults give way while a topology lasts: its elections are judged by nothing else. */
export function givesWay(action: SimAction, topologies: readonly TopologyAction[]): boolean {
  return topologies.some(({ atMs, forMs }) => action.atMs >= atMs && action.atMs < atMs + forMs);
}
