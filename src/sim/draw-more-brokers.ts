import type { BrokerMaker } from './draw-actions.ts';
import { SimRandom } from './random.ts';

/** A day, and a month. */
const FAR_MS = [86_400_000, 30 * 86_400_000];
/** For so long a broker that falls silent is counted out for sure. */
const COUNTED_OUT_MS = 9_000;
/** From then on an import is drawn: what was acknowledged before it is not looked for any more. */
const IMPORTS_FROM_MS = 30_000;

/** Those that seeds draw. The others only run where they are asked for: the code or the checks do not hold under them yet. */
const DRAWN = [
  'brokerDiskFails',
  'brokerDiskFull',
  'brokerMute',
  'brokerAnswersLost',
  'brokerAnswersLate',
  'brokersReturn',
] as const;

/** Of all seeds: so many have one of them. */
const MORE_PART = 0.15;

/** At most one kind, from a stream of its own: the rest of a seed's plan stays as it is without it. */
export function drawOneMore(seed: number): string[] {
  const random = new SimRandom(seed, 'one more');
  return random.chance(MORE_PART) ? [random.pick(DRAWN)] : [];
}

/** What befalls brokers' disks, their lines to the control plane and to each other, and what operators do. */
export const MORE_MAKERS: Readonly<Record<string, BrokerMaker>> = {
  brokerDiskFails: ({ random, atMs }, brokers) => ({
    type: 'failDisk',
    atMs,
    target: random.pick(brokers),
    full: false,
    downMs: 0,
  }),
  brokerDiskFull: ({ random, atMs }, brokers) => ({
    type: 'failDisk',
    atMs,
    target: random.pick(brokers),
    full: true,
    downMs: Math.round(random.between(20, 2_000)),
  }),
  brokerRestored: ({ random, atMs }, brokers) => ({
    type: 'restore',
    atMs,
    target: random.pick(brokers),
    afterMs: Math.round(random.between(500, 6_000)),
    powerCut: random.chance(0.5),
    downMs: random.pick([10, 10, 1_000, 9_000]),
  }),
  brokerClones: ({ random, atMs }, brokers) => ({
    type: 'clones',
    atMs,
    target: random.pick(brokers),
    turns: 2 + random.below(3),
    turnMs: Math.round(random.between(2_000, 6_000)),
    downMs: random.pick([10, 500]),
  }),
  brokerTailLost: ({ random, atMs }, brokers) => ({
    type: 'loseTail',
    atMs,
    target: random.pick(brokers),
    writes: 1 + random.below(8),
    downMs: random.pick([10, 10, 1_000, 9_000]),
  }),
  brokerBitFlipped: ({ random, atMs }, brokers) => ({
    type: 'flipBit',
    atMs,
    target: random.pick(brokers),
    downMs: random.pick([10, 1_000]),
  }),
  brokerSlowReads: ({ random, atMs }, brokers) => ({
    type: 'slowReads',
    atMs,
    target: random.pick(brokers),
    readMaxMs: random.pick([50, 500, 1_000]),
    stallMs: random.pick([0, 5_000, 8_000]),
    forMs: Math.round(random.between(500, 8_000)),
  }),
  /** Two brokers from each other, for as long as there is; the control plane reaches both. */
  brokerPairCut: ({ random, atMs }, brokers) => {
    const [from = '', to = ''] = random.shuffle(brokers);
    const isBoth = random.chance(0.6);
    return {
      type: 'cut',
      atMs,
      pairs: isBoth
        ? [
            [from, to],
            [to, from],
          ]
        : [[from, to]],
      forMs: random.pick([15_000, 45_000]),
    };
  },
  brokerCopiesRefused: ({ random, atMs }, brokers) => ({
    type: 'refuseCopies',
    atMs,
    target: random.pick(brokers),
    forMs: random.pick([5_000, 45_000]),
  }),
  brokerMute: ({ random, atMs }, brokers) => ({
    type: 'mute',
    atMs,
    target: random.pick(brokers),
    forMs: random.pick([4_000, 15_000, 45_000]),
    kill: random.chance(0.5),
  }),
  brokerAnswersLost: ({ random, atMs }, brokers) => ({
    type: 'loseAnswers',
    atMs,
    target: random.pick(brokers),
    reports: 1 + random.below(3),
    deafMs: random.pick([50, 300, 1_500]),
  }),
  brokerAnswersLate: ({ random, atMs }, brokers) => ({
    type: 'lateAnswers',
    atMs,
    target: random.pick(brokers),
    delayMs: Math.round(random.between(2_600, 3_800)),
    forMs: 12_000,
  }),
  brokersReturn: ({ random, atMs }, brokers) => ({
    type: 'otherBrokersReturn',
    atMs,
    target: random.pick(brokers),
    downMs: COUNTED_OUT_MS,
  }),
  brokerHeardLate: ({ random, atMs }, brokers) => ({
    type: 'heardLate',
    atMs,
    target: random.pick(brokers),
    silentMs: Math.round(random.between(6_450, 6_600)),
    forMs: COUNTED_OUT_MS,
  }),
  brokerOverload: ({ random, atMs }, brokers) => ({
    type: 'overload',
    atMs,
    target: random.pick(brokers),
    silentMs: Math.round(random.between(6_300, 8_000)),
  }),
  reimport: ({ random, atMs }) => ({
    type: 'reimport',
    atMs: Math.max(atMs, IMPORTS_FROM_MS),
    byMs: random.pick([0, -1, 1]) * random.pick(FAR_MS),
  }),
  movesCancelled: ({ atMs }) => ({ type: 'cancelMoves', atMs }),
  policyChanged: ({ random, atMs }) => ({
    type: 'policy',
    atMs,
    changes: random.pick([
      { fenceTimeoutMs: 1_000 },
      { fenceMaxLagRecords: 0 },
      { maxConcurrentMoves: 5, maxConcurrentHandovers: 3 },
      { moveTimeoutMs: 5_000, moveStallMs: 2_000 },
    ]),
    forMs: Math.round(random.between(2_000, 15_000)),
  }),
};
