import type { SimAction, SimRecordOperation, SimSettings } from './plan.ts';
import { drawActions, FAULTS_END_MS, KEYS, type BrokerMaker } from './draw-actions.ts';
import { drawOneMore, MORE_MAKERS } from './draw-more-brokers.ts';
import { SimRandom } from './random.ts';

const RECORDS = 240;
const CLIENTS = 4;
/** Of the faults of brokers, those that last long enough for their shards to be given to others. */
const LONG_PART = 0.25;
/** In some runs all records go to so few shards. */
const FEW_SHARDS = 4;
/** As many as every register's resource has. */
export const SHARDS = 4;
const REPLICATION_FACTORS = [2, 2, 3] as const;

export interface BrokerPart {
  readonly brokers: readonly string[];
  readonly maxShards: number | null;
  readonly replicationFactor: number;
  readonly faults: readonly string[];
  readonly actions: readonly SimAction[];
  readonly records: readonly SimRecordOperation[];
}

export const NO_BROKERS: BrokerPart = {
  brokers: [],
  maxShards: null,
  replicationFactor: 0,
  faults: [],
  actions: [],
  records: [],
};

/** The brokers of a plan, what befalls them, and what their clients do. From a stream of its own: the rest of the plan stays as it is without them. */
export function drawBrokers(
  seed: number,
  members: readonly string[],
  settings: SimSettings,
  only?: readonly string[],
): BrokerPart {
  const random = new SimRandom(seed, 'brokers');
  const brokers = Array.from({ length: 3 + random.below(2) }, (_, i) => `b${i + 1}`);
  const kinds = random.shuffle(Object.keys(MAKERS));
  const drawn = kinds.slice(0, 1 + random.below(kinds.length)).sort();
  const faults =
    only === undefined
      ? [...drawn, ...drawOneMore(seed)]
      : only.filter((kind) => BROKER_FAULTS.includes(kind));
  const actions = faults.flatMap((kind) => {
    const make = ALL_MAKERS[kind] as BrokerMaker;
    const from = only === undefined && kind in MORE_MAKERS ? new SimRandom(seed, kind) : random;
    return drawActions(from, (context) => make(context, brokers), members, settings);
  });
  // The probe's resource counts too.
  // Three where faults are asked for: the code does not hold with them yet.
  const replicationFactor = only === undefined ? REPLICATION_FACTORS[0] : random.pick(REPLICATION_FACTORS);
  const copies = (KEYS.length + 1) * SHARDS * replicationFactor;
  const room = random.pick([null, 2, 6]);
  const maxShards = room === null ? null : Math.ceil(copies / brokers.length) + room;
  return { brokers, maxShards, replicationFactor, faults, actions, records: drawRecords(random) };
}

function drawRecords(random: SimRandom): SimRecordOperation[] {
  const perClientMs = FAULTS_END_MS / (RECORDS / CLIENTS);
  const all = KEYS.flatMap((key) => Array.from({ length: SHARDS }, (_, n) => `stream:${key}/${n}`));
  const shards = random.chance(0.5) ? all : random.shuffle(all).slice(0, FEW_SHARDS);
  return Array.from({ length: RECORDS }, (_, i) => ({
    client: `d${(i % CLIENTS) + 1}`,
    type: random.chance(0.6) ? ('append' as const) : ('read' as const),
    shard: random.pick(shards),
    value: `r${i + 1}`,
    thinkMs: Math.round(random.between(0, perClientMs * 1.4)),
  }));
}

/** From a moment to twice the time after which a silent broker's shards go to others; often longer than that time. */
function aWhile(random: SimRandom): number {
  if (random.chance(LONG_PART)) return Math.round(random.between(7_000, 14_000));
  return Math.round(Math.exp(random.between(Math.log(100), Math.log(14_000))));
}

const MAKERS: Readonly<Record<string, BrokerMaker>> = {
  brokerKill: ({ random, atMs }, brokers) => ({
    type: 'kill',
    atMs,
    target: random.pick(brokers),
    powerCut: random.chance(0.5),
    downMs: aWhile(random),
  }),
  brokerStall: ({ random, atMs }, brokers) => ({
    type: 'stall',
    atMs,
    target: random.pick(brokers),
    timersFirst: random.chance(0.5),
    forMs: aWhile(random),
  }),
  /** From the control plane alone: its clients and the other brokers still reach it. */
  brokerCut: ({ random, atMs, members }, brokers) => {
    const broker = random.pick(brokers);
    const way = random.pick(['both', 'both', 'in', 'out']);
    return {
      type: 'cut',
      atMs,
      pairs: members.flatMap((id): [string, string][] => {
        if (way === 'in') return [[id, broker]];
        return way === 'out'
          ? [[broker, id]]
          : [
              [id, broker],
              [broker, id],
            ];
      }),
      forMs: aWhile(random),
    };
  },
  brokerIsolated: ({ random, atMs }, brokers) => ({
    type: 'isolate',
    atMs,
    target: random.pick(brokers),
    way: random.pick(['both', 'in', 'out']),
    forMs: aWhile(random),
  }),
  /** With the member that leads, for longer than a lease: whoever else leads then may give its shards away. */
  brokerIsland: ({ random, atMs }, brokers) => ({
    type: 'island',
    atMs,
    brokers: random.shuffle(brokers).slice(0, 1 + random.below(2)),
    forMs: Math.round(random.between(9_000, 16_000)),
  }),
  brokerSlowLink: ({ random, atMs }, brokers) => {
    const [from = '', to = ''] = random.shuffle(brokers);
    return {
      type: 'slowLink',
      atMs,
      from,
      to,
      delayMaxMs: random.pick([100, 500, 3_000]),
      bytesPerMs: random.pick([0, 1]),
      forMs: aWhile(random),
    };
  },
  brokerBreakLinks: ({ random, atMs }, brokers) => ({
    type: 'breakLinks',
    atMs,
    target: random.pick(brokers),
  }),
  brokerSlowDisk: ({ random, atMs }, brokers) => ({
    type: 'slowDisk',
    atMs,
    target: random.pick(brokers),
    syncMaxMs: random.pick([50, 500]),
    forMs: aWhile(random),
  }),
  brokerWall: ({ random, atMs }, brokers) => ({
    type: 'jumpWall',
    atMs,
    target: random.pick(brokers),
    byMs: Math.round(random.between(-60_000, 60_000)),
  }),
  brokerWiped: ({ random, atMs }, brokers) => ({
    type: 'wipe',
    atMs,
    target: random.pick(brokers),
    downMs: aWhile(random),
  }),
  drain: ({ random, atMs }, brokers) => ({
    type: 'drain',
    atMs,
    broker: random.pick(brokers),
    forMs: aWhile(random),
  }),
};

const ALL_MAKERS = { ...MAKERS, ...MORE_MAKERS };

/** Every kind of fault of brokers. */
export const BROKER_FAULTS: readonly string[] = Object.keys(ALL_MAKERS);
