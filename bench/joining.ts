/**
 * A broker joins a level cluster, to the end: every pass from its registration until nothing is wanted any more, each carried
 * out at once, with a thousand slots. A pass that takes long keeps the shards of a broker that dies meanwhile waiting.
 *   npm run bench:joining -- [--layouts 0,1]
 */
import { parseArgs } from 'node:util';
import type * as Placement from '../placement/index.ts';
import type * as Simulated from '../placement/sim-cluster.ts';
import { built } from './built.ts';
import { brokersOf, LAYOUTS, NO_REPORTS, placedBy, type Layout } from './planner-layouts.ts';
import { emptyCluster } from './planner-scenes.ts';
import { numbers } from './support.ts';

const SLOTS = 1_000;

const { values } = parseArgs({ options: { layouts: { type: 'string', default: '0,1' } } });
const { plan } = await built<typeof Placement>('placement/index.js');
const { SimCluster } = await built<typeof Simulated>('placement/sim-cluster.js');

console.log(
  '| shards on brokers | passes | CPU in all | of the longest pass | leaderships moved (fewest) | copies moved, followers | copies on a broker, fewest and most | the last pass |',
);
console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
for (const n of numbers(values.layouts)) {
  const layout = LAYOUTS[n];
  if (layout === undefined) throw new Error(`no layout ${n}`);
  console.log(`| ${layout.name}, and one more | ${joinOne(layout).join(' | ')} |`);
}

function joinOne(layout: Layout): string[] {
  const empty = emptyCluster(layout);
  const policy = { ...empty.policy, maxConcurrentMoves: SLOTS, maxConcurrentHandovers: SLOTS };
  const { nowMs, ...rest } = { ...empty, policy };
  const assignments = placedBy(plan({ ...empty, policy }, NO_REPORTS));
  const cluster = new SimCluster({
    ...rest,
    timeMs: nowMs,
    brokers: brokersOf(layout.brokers + 1),
    assignments,
  });
  const passesMs: number[] = [];
  const moved = { leader: 0, follower: 0 };
  let fewest: number | null = null;
  for (;;) {
    cluster.beginPass();
    const before = process.cpuUsage();
    const made = plan(cluster.snapshot(), cluster.reports());
    const { user, system } = process.cpuUsage(before);
    passesMs.push((user + system) / 1_000);
    fewest ??= made.minimumLeaderMoves;
    for (const step of made.steps) {
      if (cluster.attempt(step) && (step.step === 'cutOver' || step.step === 'seat')) moved[step.role]++;
    }
    if (made.steps.length > 0 || cluster.awaitsCopies) continue;
    const copies = Object.values(made.levels.copiesTotal);
    return [
      `${passesMs.length}`,
      seconds(passesMs.reduce((sum, ms) => sum + ms, 0)),
      seconds(Math.max(...passesMs)),
      `${moved.leader} (${fewest ?? '–'})`,
      `${moved.follower}`,
      `${Math.min(...copies)}–${Math.max(...copies)}`,
      seconds(passesMs.at(-1) ?? 0),
    ];
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}
