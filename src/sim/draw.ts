import { drawActions, FAULTS_END_MS, KEYS, type Context, type Maker } from './draw-actions.ts';
import { drawTopologies, givesWay, TOPOLOGIES } from './draw-topologies.ts';
import { BROKER_FAULTS, drawBrokers, NO_BROKERS } from './draw-brokers.ts';
import type { SimAction, Target, SimOperation, SimPlan, SimSettings } from './plan.ts';
import { ANY_FOLLOWER, ANY_LEADER } from './plan.ts';
import { SimRandom } from './random.ts';
import type { CrashPoint } from './taps.ts';

const OPERATIONS = 500;
const CLIENTS = 6;
const LEAST_FAULTS = 4;
/** Enough for all clients at once, and not for a burst. */
const FEW_PROPOSALS = 24;
const CRASH_POINTS: readonly CrashPoint[] = [
  'beforeWrite',
  'duringWrite',
  'afterWrite',
  'beforeSend',
  'afterApply',
];

export interface DrawOptions {
  readonly brokers: boolean;
  /** These kinds of fault instead of those that would be drawn. */
  readonly only?: readonly string[];
}

/** A seed's plan: which faults are on, then how often each, then when and what. */
export function drawPlan(seed: number, options: DrawOptions): SimPlan {
  const { only } = options;
  const random = new SimRandom(seed, 'plan');
  const count = random.pick([3, 3, 3, 4, 5, 5]);
  const members = Array.from({ length: count }, (_, i) => `n${i + 1}`);
  const settings = drawSettings(random, members);
  const kinds = random.shuffle(Object.keys(MAKERS));
  const drawn = kinds.slice(0, LEAST_FAULTS + random.below(kinds.length - LEAST_FAULTS + 1)).sort();
  const faults = only === undefined ? drawn : only.filter((kind) => kind in MAKERS);
  const quorum = Math.floor(count / 2) + 1;
  const least = faults.includes('flipBit') ? 1 : 0;
  const core = random.shuffle(members).slice(0, quorum + random.below(count - quorum + 1 - least));
  const actions = faults.flatMap((kind) => drawActions(random, MAKERS[kind] as Maker, members, settings));
  const victim = members.find((id) => !core.includes(id));
  const operations = drawOperations(random, members);
  const lasting = drawTopologies(seed, members, settings, only);
  const plane = options.brokers ? drawBrokers(seed, members, settings, only) : NO_BROKERS;
  return {
    seed,
    members,
    brokers: plane.brokers,
    maxShards: plane.maxShards,
    replicationFactor: plane.replicationFactor,
    settings,
    faults: [...faults, ...plane.faults, ...lasting.faults],
    actions: [
      ...[...actions.map((action) => aim(action, victim)), ...plane.actions].filter(
        (action) => !givesWay(action, lasting.actions),
      ),
      ...lasting.actions,
    ].sort((a, b) => a.atMs - b.atMs),
    operations,
    records: plane.records,
    faultsEndMs: FAULTS_END_MS,
    core: core.sort(),
    outsiders: random.pick(['healed', 'killed', 'cut', 'deaf']),
  };
}

/** Bits rot on one member only: what a quorum has is never in danger. */
function aim(action: SimAction, victim: string | undefined): SimAction {
  return action.type === 'flipBit' && victim !== undefined ? { ...action, target: victim } : action;
}

function drawSettings(random: SimRandom, members: readonly string[]): SimSettings {
  const electionTimeoutMs = random.pick([300, 500, 1_000, 1_000]);
  const snapshotEveryEntries = random.pick([20, 60, 200, 50_000]);
  const drift = random.pick([0, 0.001, 0.01]);
  return {
    electionTimeoutMs,
    heartbeatMs: electionTimeoutMs / 10,
    limits: {
      snapshotEveryEntries,
      trailingEntries: random.below(Math.min(snapshotEveryEntries, 50)),
      maxAppendEntries: random.pick([1, 3, 4_096]),
      maxInflightMessages: random.pick([1, 4, 64]),
      maxWriteEntries: random.pick([1, 5, 8_192]),
      maxApplyEntries: random.pick([1, 5, 512]),
      maxPendingProposals: random.pick([FEW_PROPOSALS, 16_384]),
    },
    delayMinMs: 0.1,
    delayMaxMs: random.pick([0.5, 2, 10]),
    syncMaxMs: random.pick([0.3, 2, 10]),
    driftPart: perMember(members, () => random.between(-drift, drift)),
    wallOffsetMs: perMember(members, () => Math.round(random.between(-4 * 3_600_000, 4 * 3_600_000))),
  };
}

function drawOperations(random: SimRandom, members: readonly string[]): SimOperation[] {
  const readPart = random.pick([0.3, 0.5, 0.7]);
  const casPart = random.pick([0, 0.2]);
  const perClientMs = FAULTS_END_MS / (OPERATIONS / CLIENTS);
  return Array.from({ length: OPERATIONS }, (_, i) => {
    const draw = random.unit();
    return {
      client: `c${(i % CLIENTS) + 1}`,
      type: draw < readPart ? 'read' : draw < readPart + casPart ? 'cas' : 'write',
      key: random.pick(KEYS),
      value: `v${i + 1}`,
      thinkMs: Math.round(random.between(0, perClientMs * 1.4)),
      first: random.pick(members),
    } satisfies SimOperation;
  });
}

/** Somebody, a leader in half of the cases: that is where it hurts. */
function target({ random, members }: Context): Target {
  const draw = random.unit();
  if (draw < 0.5) return ANY_LEADER;
  return draw < 0.7 ? ANY_FOLLOWER : random.pick(members);
}

/** From a moment to several elections. */
function aWhile({ random, electionTimeoutMs }: Context): number {
  return Math.round(electionTimeoutMs * Math.exp(random.between(Math.log(0.2), Math.log(12))));
}

function pairsBetween(a: readonly string[], b: readonly string[]): [string, string][] {
  return a.flatMap((x) =>
    b.flatMap((y): [string, string][] => [
      [x, y],
      [y, x],
    ]),
  );
}

const MAKERS: Readonly<Record<string, Maker>> = {
  partition: (c) => {
    const order = c.random.shuffle(c.members);
    const at = 1 + c.random.below(order.length - 1);
    return {
      type: 'cut',
      atMs: c.atMs,
      pairs: pairsBetween(order.slice(0, at), order.slice(at)),
      forMs: aWhile(c),
    };
  },
  bridge: (c) => {
    // Two sides see only the one in the middle.
    const [, ...rest] = c.random.shuffle(c.members);
    const half = Math.ceil(rest.length / 2);
    return {
      type: 'cut',
      atMs: c.atMs,
      pairs: pairsBetween(rest.slice(0, half), rest.slice(half)),
      forMs: aWhile(c),
    };
  },
  oneWay: (c) => {
    const [from = '', to = ''] = c.random.shuffle(c.members);
    return { type: 'cut', atMs: c.atMs, pairs: [[from, to]], forMs: aWhile(c) };
  },
  isolate: (c) => ({
    type: 'isolate',
    atMs: c.atMs,
    target: target(c),
    way: c.random.pick(['both', 'both', 'in', 'out']),
    forMs: aWhile(c),
  }),
  slowLink: (c) => {
    const [from = '', to = ''] = c.random.shuffle(c.members);
    return {
      type: 'slowLink',
      atMs: c.atMs,
      from,
      to,
      delayMaxMs: c.random.pick([20, 100, 800]),
      bytesPerMs: c.random.pick([0, 1, 10]),
      forMs: aWhile(c),
    };
  },
  breakLinks: (c) => ({ type: 'breakLinks', atMs: c.atMs, target: target(c) }),
  lossyLinks: (c) => ({
    type: 'lossyLinks',
    atMs: c.atMs,
    lossPart: c.random.pick([0, 0.02, 0.2]),
    duplicatePart: c.random.pick([0, 0.05, 0.3]),
    reorderPart: c.random.pick([0, 0.1, 0.5]),
    lateMs: c.random.pick([0, 0, 1, 4]) * c.electionTimeoutMs,
    resetPart: c.random.pick([0, 0, 0.005]),
    forMs: aWhile(c) * 2,
  }),
  kill: (c) => ({ type: 'kill', atMs: c.atMs, target: target(c), powerCut: false, downMs: aWhile(c) }),
  powerCut: (c) => ({ type: 'kill', atMs: c.atMs, target: target(c), powerCut: true, downMs: aWhile(c) }),
  blackout: (c) => ({ type: 'blackout', atMs: c.atMs, powerCut: c.random.chance(0.5), downMs: aWhile(c) }),
  crashAt: (c) => ({
    type: 'crashAt',
    atMs: c.atMs,
    target: target(c),
    point: c.random.pick(CRASH_POINTS),
    skip: c.random.below(12),
    powerCut: c.random.chance(0.5),
    downMs: aWhile(c),
  }),
  stall: (c) => ({
    type: 'stall',
    atMs: c.atMs,
    target: target(c),
    timersFirst: c.random.chance(0.5),
    forMs: aWhile(c),
  }),
  slowDisk: (c) => ({
    type: 'slowDisk',
    atMs: c.atMs,
    target: target(c),
    syncMaxMs: c.random.pick([20, 100, 600]),
    forMs: aWhile(c),
  }),
  failDisk: (c) => ({
    type: 'failDisk',
    atMs: c.atMs,
    target: target(c),
    full: c.random.chance(0.3),
    downMs: aWhile(c),
  }),
  jumpWall: (c) => ({
    type: 'jumpWall',
    atMs: c.atMs,
    target: target(c),
    byMs: Math.round(c.random.between(-86_400_000, 86_400_000)),
  }),
  transfer: (c) => ({ type: 'transfer', atMs: c.atMs, to: c.random.pick(c.members) }),
  snapshot: (c) => ({ type: 'snapshot', atMs: c.atMs, target: target(c) }),
  burst: (c) => ({ type: 'burst', atMs: c.atMs, target: target(c), writes: 1 + c.random.below(40) }),
  strand: (c) => ({ type: 'strand', atMs: c.atMs, writes: 1 + c.random.below(20), forMs: aWhile(c) }),
  lateNews: (c) => ({
    type: 'lateNews',
    atMs: c.atMs,
    delayMs: Math.round(c.electionTimeoutMs * c.random.between(0.3, 1)),
    forMs: Math.round(c.electionTimeoutMs * c.random.between(1, 2)),
  }),
  flipBit: (c) => ({ type: 'flipBit', atMs: c.atMs, target: ANY_FOLLOWER, downMs: aWhile(c) }),
};

/** Every kind of fault by name. */
export const FAULTS: readonly string[] = [...Object.keys(MAKERS), ...BROKER_FAULTS, ...TOPOLOGIES].sort();

function perMember(members: readonly string[], draw: () => number): Record<string, number> {
  return Object.fromEntries(members.map((id) => [id, draw()]));
}
