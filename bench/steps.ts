/**
 * How long one turn of one node's event loop holds the thread that runs Raft, at 100,000 shards on 100 brokers: the CPU
 * time of each turn of each kind of work, all in one process with nothing else under way. Prints the table of
 * docs/benchmarks.md.
 *   npm run bench:steps -- [--layout 1] [--rounds 3] [--match 'export|snapshot']
 */
import { MessageChannel } from 'node:worker_threads';
import { parseArgs } from 'node:util';
import type * as placementModule from '../placement/index.ts';
import type { Assignment, Resource } from '../placement/index.ts';
import type * as watchModule from '../src/wire/broker-watch.ts';
import type { Command } from '../src/command/index.ts';
import type { ControlPlane } from '../src/control-plane.ts';
import type * as feederModule from '../src/control/state-feeder.ts';
import type * as figuresModule from '../src/metrics-placement.ts';
import type * as jsonModule from '../src/json-in-slices.ts';
import type * as turnsModule from '../src/one-a-turn.ts';
import type * as wireModule from '../src/wire/index.ts';
import { StepClock } from '../tests/support/step-clock.ts';
import { built } from './built.ts';
import {
  brokersOf,
  LAYOUTS,
  NO_REPORTS,
  NOW_MS,
  placedBy,
  resourcesOf,
  shardCount,
} from './planner-layouts.ts';
import { Member, type Log } from './steps-member.ts';

const { values } = parseArgs({
  options: {
    layout: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
    match: { type: 'string', default: '' },
  },
});
const chosen = LAYOUTS[Number(values.layout)];
if (chosen === undefined) throw new Error(`--layout must be 0 to ${LAYOUTS.length - 1}`);
const layout = chosen;
const rounds = Number(values.rounds);
const wanted = new RegExp(values.match);

const { plan } = await built<typeof placementModule>('placement/index.js');
const { StateFeeder } = await built<typeof feederModule>('src/control/state-feeder.js');
const { placementFigures } = await built<typeof figuresModule>('src/metrics-placement.js');
const { jsonInSlices } = await built<typeof jsonModule>('src/json-in-slices.js');
const { oneATurn } = await built<typeof turnsModule>('src/one-a-turn.js');
const { BrokerWatch, SnapshotGate } = await built<typeof watchModule>('src/wire/broker-watch.js');
const { RPC_METHODS } = await built<typeof wireModule>('src/wire/index.js');

const REPORTED = 10_000;
const clock = new StepClock();
const shared = oneATurn(clock);

/** One piece of work, begun anew for each round: answers what carries out its next turn, false after the last. */
type Begin = () => () => boolean | Promise<boolean>;

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** The round with the shortest longest turn: on a shared machine the others measure their neighbours. */
async function measure(name: string, begin: Begin): Promise<void> {
  if (!wanted.test(name)) return;
  let best: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const next = begin();
    const turns: number[] = [];
    for (let more = true; more;) {
      const before = cpuMs();
      more = await next();
      turns.push(cpuMs() - before);
    }
    turns.sort((a, b) => a - b);
    if (round === 0 || (turns.at(-1) ?? 0) < (best.at(-1) ?? 0)) best = turns;
  }
  const at = (part: number): string => (best[Math.floor((best.length - 1) * part)] ?? 0).toFixed(1);
  const seconds = best.reduce((sum, ms) => sum + ms, 0) / 1_000;
  console.log(`| ${name} | ${best.length} | ${at(0.5)} | ${at(0.99)} | ${at(1)} | ${seconds.toFixed(2)} |`);
}

/** Work that leaves the thread by `defer`. */
function deferring(start: () => unknown): Begin {
  return () => {
    let isBegun = false;
    let result: unknown;
    return async () => {
      if (isBegun) await clock.turn();
      else result = start();
      isBegun = true;
      if (clock.isIdle) await Promise.race([result, new Promise((resolve) => setImmediate(resolve))]);
      return !clock.isIdle;
    };
  };
}

function applying(log: Log, command: Command): Begin {
  return () => {
    const member = new Member(log);
    const entries = [member.entry(command)];
    return () => member.machine.apply(entries).length === 0;
  };
}

function stepping(steps: () => Iterator<unknown>): Begin {
  return () => {
    const iterator = steps();
    return () => iterator.next().done !== true;
  };
}

function registration(id: string, storeId: string): Command {
  const broker = {
    id,
    zone: 'a',
    addresses: { data: `${id}:9000` },
    maxShards: null,
    weight: 1,
    labels: {},
    storeId,
    starts: null,
  };
  return { type: 'registerBroker', broker };
}

/** The cluster of these rows, every broker registered. */
function logOf(resources: readonly Resource[], assignments: readonly Assignment[]): Log {
  const member = new Member(null);
  for (const command of member.importOf(brokersOf(layout.brokers), resources, assignments))
    member.apply(command);
  for (const { id } of brokersOf(layout.brokers)) member.apply(registration(id, `store-${id}`));
  return member.log();
}

const MAX_ANSWER_BYTES = 2 ** 30;

async function answering(member: Member, name: string, params: object): Promise<unknown> {
  const method = RPC_METHODS.find((each) => each.name === name);
  if (method === undefined) throw new Error(`no method ${name}`);
  // A copy, so that what is kept once a revision is counted anew.
  const plane = { state: { ...member.machine.view } } as unknown as ControlPlane;
  const context = { plane, clock: shared, admitLarge: () => Promise.resolve() } as never;
  const answer = await method.run({ consistency: 'local', ...params }, () => context);
  return jsonInSlices(answer, shared, MAX_ANSWER_BYTES);
}

/** A change of 3,000 rows on its way to a watch of each broker. */
function watching(log: Log, command: Command): Begin {
  return () => {
    const member = new Member(log);
    const plane = { state: member.machine.view, feed: member.ring } as unknown as ControlPlane;
    const gate = new SnapshotGate();
    const host = {
      ...{ gate, plane, clock: shared, unreadBytes: () => 0, tooSlow: () => undefined },
      push: (message: object) => void JSON.stringify(message),
    };
    const { revision } = member.machine.view;
    for (const [n, { id }] of brokersOf(layout.brokers).entries())
      new BrokerWatch(host, n, id).start(revision);
    let isApplied = false;
    const entries = [member.entry(command)];
    return async () => {
      if (isApplied) await clock.turn();
      else isApplied = member.machine.apply(entries).length > 0;
      return !isApplied || !clock.isIdle;
    };
  };
}

function feeding(log: Log): Begin {
  return () => {
    const member = new Member(log);
    const { port1 } = new MessageChannel();
    const feeder = new StateFeeder(member.machine.view, member.ring, () => undefined);
    feeder.start(() => undefined);
    return () => {
      const part = feeder.next();
      if (part !== null) port1.postMessage({ type: 'part', part });
      else port1.close();
      return part !== null;
    };
  };
}

const resources = resourcesOf(layout);
const brokers = brokersOf(layout.brokers);
const empty = { nowMs: NOW_MS, firstRegisteredAtMs: 0, phase: 0, brokers, resources, assignments: [] };
const { DEFAULT_POLICY } = await built<typeof placementModule>('placement/index.js');
const placed = placedBy(plan({ ...empty, policy: DEFAULT_POLICY }, NO_REPORTS));
const log = logOf(resources, placed);
const view = new Member(log).machine.view;
const led = view.assignments
  .list()
  .filter(({ leader }) => leader === 'b1')
  .slice(0, REPORTED);
const incarnation = view.brokers.get('b1')?.incarnation ?? 0;
const of = { broker: 'b1', incarnation };
const reported = led.map(({ shard, generation }) => ({ shard, generation, inSync: ['b1'], drained: false }));

console.log('| work | turns | p50 ms | p99 ms | longest ms | CPU s in all |');
console.log('| --- | ---: | ---: | ---: | ---: | ---: |');
await measure(
  'a broker registers, its store another: 3,000 rows',
  applying(log, registration('b1', 'other')),
);
await measure('a broker registers with its store: 3,000 rows', applying(log, registration('b1', 'store-b1')));
await measure(
  'a broker is declared down: 3,000 rows',
  applying(log, { type: 'setLifecycle', ...of, lifecycle: 'down', silentSinceMs: 0 }),
);
await measure(
  `a report of the ${led.length} shards it leads`,
  applying(log, { type: 'report', ...of, shards: reported }),
);
const deletion = { type: 'deleteResource', kind: 'stream', name: 's0', expectedRevision: null } as const;
const DELETED = 'a resource of 100,000 shards deleted';
if (wanted.test(DELETED)) {
  const wide = logOf(
    resourcesOf({ ...layout, streams: 1, shards: shardCount(layout), caches: 0 }),
    placed.map((row, n) => ({ ...row, shard: `stream:s0/${n}` })),
  );
  await measure(DELETED, applying(wide, deletion));
}
const IMPORTED = 'an import of 100,000 shards over as many made visible';
if (wanted.test(IMPORTED)) {
  const member = new Member(log);
  const commands = member.importOf(brokers, resources, placed);
  const commit = commands.pop();
  if (commit === undefined) throw new Error('an import has a closing entry');
  for (const command of commands) member.apply(command);
  await measure(IMPORTED, applying(member.log(), commit));
}
await measure('a registration of 3,000 rows told to 100 watches', watching(log, registration('b1', 'other')));
await measure(
  'a snapshot taken',
  stepping(() => new Member(log).machine.snapshotParts()),
);
await measure(
  'a snapshot read back',
  stepping(() => new Member(null).machine.restoreInSteps(log.snapshot, log.index)),
);
await measure('the state sent to the planner', feeding(log));
const member = new Member(log);
await measure(
  "a scrape's figures of placement",
  deferring(() => placementFigures({ ...member.machine.view }, shared)),
);
for (const [name, params] of [
  ['export', {}],
  ['placement.levels', {}],
  ['placement.replication', {}],
  ['broker.list', {}],
  ['resource.list', {}],
  ['shard.list', {}],
  ['shard.list', { broker: 'b1' }],
] as const) {
  const filter = Object.keys(params).length === 0 ? '' : ' of one broker';
  await measure(
    `\`${name}\`${filter}`,
    deferring(() => answering(member, name, params)),
  );
}
