/**
 * The planner at three sizes: a first placement, a settled pass, one broker joining, draining, dying, a policy
 * changed, and all but the first again with every twentieth leadership skewed. Each layout runs in a process of its
 * own, for its peak memory. Beside it, on the same layouts, a striped round robin and the plain greedy.
 *   npm run bench:planner -- [--layouts 0,1,2]
 */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import type * as Placement from '../placement/index.ts';
import type { Assignment, Plan, Snapshot } from '../placement/index.ts';
import type * as Control from '../src/control/settled-plan.ts';
import { built } from './built.ts';
import {
  brokersOf,
  LAYOUTS,
  NO_REPORTS,
  NOW_MS,
  placedBy,
  resourcesOf,
  shardCount,
  skewed,
  withBroker,
  withDead,
  type Layout,
} from './planner-layouts.ts';
import { greedyMoves, leastLoaded, striped, type Layers } from './planner-others.ts';
import { numbers } from './support.ts';

const { values } = parseArgs({
  options: { layouts: { type: 'string', default: '0,1,2' }, layout: { type: 'string' } },
});
const FIRST = 'first placement';

if (values.layout === undefined) await runAll(numbers(values.layouts));
else await measureLayout(LAYOUTS[Number(values.layout)] ?? fail(`no layout ${values.layout}`));

/** Each in a process of its own; the growth of a first placement from one size to the next. */
async function runAll(layouts: readonly number[]): Promise<void> {
  const firsts: { shards: number; cpuMs: number }[] = [];
  for (const n of layouts) {
    const args = [...process.execArgv, import.meta.filename, '--layout', String(n)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      text += String(chunk);
      process.stdout.write(String(chunk));
    }
    const cells = new RegExp(`^\\| ${FIRST} \\|[^|]*\\| *([\\d,]+) ms`, 'm').exec(text);
    if (cells === null) fail(`layout ${n} ended before its first row`);
    const layout = LAYOUTS[n] ?? fail(`no layout ${n}`);
    firsts.push({ shards: shardCount(layout), cpuMs: Number(cells[1]?.replaceAll(',', '')) });
    console.log();
  }
  for (const [i, { shards, cpuMs }] of firsts.entries()) {
    const before = firsts[i - 1];
    if (before === undefined) continue;
    const power = Math.log(cpuMs / before.cpuMs) / Math.log(shards / before.shards);
    console.log(`growth ${before.shards} -> ${shards} shards: as shards to the power ${power.toFixed(2)}`);
  }
}

function fail(message: string): never {
  throw new Error(message);
}

async function measureLayout(layout: Layout): Promise<void> {
  const { plan, DEFAULT_POLICY } = await built<typeof Placement>('placement/index.js');
  const { SettledPlan } = await built<typeof Control>('src/control/settled-plan.js');
  const brokers = brokersOf(layout.brokers);
  const resources = resourcesOf(layout);
  const base = { nowMs: NOW_MS, brokers, resources, policy: DEFAULT_POLICY, firstRegisteredAtMs: 0 };
  console.log(`### ${layout.name}\n`);
  console.log('| pass | time | CPU | steps | fewest leadership moves |');
  console.log('| --- | ---: | ---: | ---: | ---: |');
  const measured = <T extends Omit<Plan, 'levels'>>(name: string, run: () => T): T => {
    const { value, ms, cpuMs } = timed(run);
    const least = value.minimumLeaderMoves === null ? '–' : count(value.minimumLeaderMoves);
    console.log(
      `| ${name} | ${count(ms)} ms | ${count(cpuMs)} ms | ${count(value.steps.length)} | ${least} |`,
    );
    return value;
  };
  const first = measured(FIRST, () => plan({ ...base, assignments: [] }, NO_REPORTS));
  const rows = placedBy(first);
  console.log(`| …peak memory so far | ${peakMib()} MiB | | | |`);
  for (const [assignments, suffix] of [
    [rows, ''],
    [skewed(rows), ', 5 % skewed'],
  ] as const) {
    const snapshot = { ...base, assignments };
    const passOver = (name: string, of: Snapshot): Plan =>
      measured(`${name}${suffix}`, () => plan(of, NO_REPORTS));
    passOver(suffix === '' ? 'settled' : 'as it is', snapshot);
    if (suffix === '') {
      const settled = new SettledPlan();
      const again = () => settled.plan(base, NO_REPORTS, () => ({ brokers, resources, assignments }));
      again();
      measured('settled, nothing changed since', again);
    }
    const joined = brokersOf(layout.brokers + 1);
    passOver('one broker joins', { ...snapshot, brokers: joined });
    passOver('one drains', withBroker(snapshot, 'b5', { drain: true }));
    passOver('one dies', withDead(snapshot, 'b5'));
    passOver('zone policy changed', {
      ...snapshot,
      policy: { ...DEFAULT_POLICY, zonePolicy: 'zone' },
    });
  }
  console.log(`\npeak memory ${peakMib()} MiB\n`);
  compare(layout, first, rows);
}

/** The three placers side by side, and what each moves when a broker joins. */
function compare(layout: Layout, first: Plan, rows: readonly Assignment[]): void {
  const brokers = brokersOf(layout.brokers);
  const joined = brokersOf(layout.brokers + 1);
  const resources = resourcesOf(layout);
  console.log(
    '| placer | CPU | copies per broker | leaders per broker | of one resource, most apart | leadership moves when a broker joins |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: |');
  const row = (name: string, cpuMs: number | null, layers: Layers, moves: string): void => {
    const { copies, leaders, apart } = spreads(layers, layout, brokers.length);
    const cpu = cpuMs === null ? 'above' : `${count(cpuMs)} ms`;
    console.log(`| ${name} | ${cpu} | ${copies} | ${leaders} | ${apart} | ${moves} |`);
  };
  const index = (id: string): number => Number(id.slice(1)) - 1;
  const inOrder = new Map(first.steps.map(({ shard, next }) => [shard, next.replicas.map(index)]));
  const ours: Layers = resources.flatMap(({ kind, name, shards }) =>
    Array.from({ length: shards }, (_, n) => inOrder.get(`${kind}:${name}/${n}`) ?? []),
  );
  const share = Math.floor(rows.length / joined.length);
  row('evenkeel', null, ours, `as above (the newcomer's share is ${count(share)})`);
  const stripes = timed(() => striped(brokers, resources));
  const again = striped(joined, resources);
  const changed = stripes.value.filter((set, i) => set[0] !== again[i]?.[0]).length;
  row('striped round robin', stripes.cpuMs, stripes.value, `${count(changed)} (placed anew)`);
  const greedy = timed(() => leastLoaded(brokers, resources));
  const fromOurs = greedyMoves(leaderCounts(ours, layout, joined.length), joined.length);
  const fromOwn = greedyMoves(leaderCounts(greedy.value, layout, joined.length), joined.length);
  row(
    'plain greedy',
    greedy.cpuMs,
    greedy.value,
    `${count(fromOwn)} (from evenkeel's layout ${count(fromOurs)})`,
  );
}

function leaderCounts(layers: Layers, layout: Layout, brokers: number): Int32Array[] {
  let at = 0;
  return resourcesOf(layout).map(({ shards }) => {
    const row = new Int32Array(brokers);
    for (let n = 0; n < shards; n++) {
      const leader = layers[at++]?.[0] ?? 0;
      row[leader] = (row[leader] ?? 0) + 1;
    }
    return row;
  });
}

function spreads(
  layers: Layers,
  layout: Layout,
  brokers: number,
): { copies: string; leaders: string; apart: number } {
  const copies = new Int32Array(brokers);
  const leaders = new Int32Array(brokers);
  for (const set of layers) {
    for (const b of set) copies[b] = (copies[b] ?? 0) + 1;
    leaders[set[0] ?? 0] = (leaders[set[0] ?? 0] ?? 0) + 1;
  }
  let apart = 0;
  for (const row of leaderCounts(layers, layout, brokers)) apart = Math.max(apart, most(row) - fewest(row));
  const range = (counts: Int32Array): string => `${count(fewest(counts))}–${count(most(counts))}`;
  return { copies: range(copies), leaders: range(leaders), apart };
}

function most(counts: Int32Array): number {
  return counts.reduce((a, b) => Math.max(a, b), 0);
}

function fewest(counts: Int32Array): number {
  return counts.reduce((a, b) => Math.min(a, b), Infinity);
}

/** Wall time, and CPU of this process with its collector's threads; on a busy machine the latter says more. */
function timed<T>(run: () => T): { value: T; ms: number; cpuMs: number } {
  const began = performance.now();
  const before = process.cpuUsage();
  const value = run();
  const { user, system } = process.cpuUsage(before);
  return { value, ms: performance.now() - began, cpuMs: (user + system) / 1_000 };
}

function count(n: number): string {
  return n > 0 && n < 1 ? n.toFixed(2) : Math.round(n).toLocaleString('en-US');
}

function peakMib(): string {
  return count(process.resourceUsage().maxRSS / 1_024);
}
