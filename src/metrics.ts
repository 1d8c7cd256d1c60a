import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import type { PassStats } from './control/index.ts';
import type { ControlPlane } from './control-plane.ts';
import { placementFigures, type PlacementFigures } from './metrics-placement.ts';

const LOOP_RESOLUTION_MS = 10;
const LOOP_PERCENTILES = [50, 99, 99.9];
const NS_PER_SECOND = 1e9;
const LIFECYCLES = ['live', 'draining', 'down', 'left'];

/** One node's metrics, in a registry of its own. What the state says is computed at a scrape, once a revision. */
export interface Metrics {
  readonly contentType: string;
  exposition(): Promise<string>;
  stop(): void;
}

/** `passes` is what this node's `control` has counted since the process began. */
export function createMetrics(plane: ControlPlane, passes: PassStats): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ node: plane.nodeId });
  collectDefaultMetrics({ register: registry });
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  addRaft(registry, plane);
  addLoop(registry, loop);
  addState(registry, plane);
  addPlacement(registry, plane);
  addPasses(registry, passes);
  return {
    contentType: registry.contentType,
    exposition: () => registry.metrics(),
    stop: () => loop.disable(),
  };
}

type Labels = Readonly<Record<string, string>>;

interface Described {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

/** A gauge read at each scrape: a number, or one for each set of labels. */
function gauge(
  registry: Registry,
  { name, help, labelNames = [] }: Described,
  read: () => number | readonly (readonly [Labels, number])[],
): void {
  const metric = new Gauge({
    name: `evenkeel_${name}`,
    help,
    labelNames,
    registers: [],
    collect() {
      const values = read();
      this.reset();
      if (typeof values === 'number') this.set(values);
      else for (const [labels, value] of values) this.set(labels, value);
    },
  });
  registry.registerMetric(metric);
}

/** A counter that somebody else counts, read at each scrape. */
function counter(
  registry: Registry,
  { name, help, labelNames = [] }: Described,
  read: () => readonly (readonly [Labels, number])[],
): void {
  const metric = new Counter({
    name: `evenkeel_${name}`,
    help,
    labelNames,
    registers: [],
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.inc(labels, value);
    },
  });
  registry.registerMetric(metric);
}

function addRaft(registry: Registry, plane: ControlPlane): void {
  const add = (name: string, help: string, read: () => number): void =>
    gauge(registry, { name: `raft_${name}`, help }, read);
  add('term', 'Current term', () => plane.raftStatus().term);
  add('is_leader', '1 while this node leads', () => Number(plane.raftStatus().role === 'leader'));
  add('has_leader', '1 while a leader is known', () => Number(plane.leadership().leaderId !== null));
  add('commit_index', 'Highest committed index known', () => plane.raftStatus().commitIndex);
  add('applied_index', 'Highest applied index', () => plane.raftStatus().appliedIndex);
  add('last_index', 'Last index of the log', () => plane.raftStatus().lastIndex);
  add('ready', '1 while caught up and a leader is known', () => Number(plane.raftStatus().ready));
}

function addLoop(registry: Registry, loop: IntervalHistogram): void {
  const described = {
    name: 'event_loop_delay_seconds',
    help: 'Delay of the event loop since the last scrape',
    labelNames: ['quantile'],
  };
  gauge(registry, described, () => {
    const rows = LOOP_PERCENTILES.map(
      (percentile) => [{ quantile: String(percentile / 100) }, loop.percentile(percentile)] as const,
    );
    const all = [...rows, [{ quantile: '1' }, loop.max] as const];
    loop.reset();
    return all.map(([labels, delayNs]) => [labels, delayNs / NS_PER_SECOND]);
  });
}

function addState(registry: Registry, { state }: ControlPlane): void {
  const add = (name: string, help: string, read: () => number): void =>
    gauge(registry, { name: `state_${name}`, help }, read);
  add('revision', 'Index of the last entry that changed the state', () => state.revision);
  add('resources', 'Streams and caches', () => state.resources.size);
  add('assignments', 'Shards placed', () => state.assignments.size);
  const brokers = { name: 'state_brokers', help: 'Brokers by lifecycle', labelNames: ['lifecycle'] };
  gauge(registry, brokers, () => {
    const rows = [...state.brokers.values()];
    return LIFECYCLES.map((lifecycle) => [
      { lifecycle },
      rows.filter((row) => row.lifecycle === lifecycle).length,
    ]);
  });
}

function addPlacement(registry: Registry, plane: ControlPlane): void {
  const read = (): PlacementFigures => placementFigures(plane.state);
  const add = (name: string, help: string, pick: (figures: PlacementFigures) => number): void =>
    gauge(registry, { name: `placement_${name}`, help }, () => pick(read()));
  add('max_leader_spread_per_resource', 'Most leaders less fewest, worst resource', (f) => f.maxLeaderSpread);
  add('resources_out_of_level', 'Resources whose leaders are two or more apart', (f) => f.outOfLevel);
  add('leader_spread_total', 'Most leaders of all resources less fewest', (f) => f.leaderSpreadTotal);
  add('copy_spread_total', 'Most copies of all resources less fewest', (f) => f.copySpreadTotal);
  add('under_replicated', 'Shards with fewer in-sync copies than wanted', (f) => f.underReplicated);
  add('leaderless', 'Shards whose leader does not serve, or not placed', (f) => f.leaderless);
  add('paused', '1 while paused', () => Number(plane.state.policy.paused));
  const moves = {
    name: 'placement_moves_in_flight',
    help: 'Moves in flight by step and reason',
    labelNames: ['step', 'reason'],
  };
  gauge(registry, moves, () => read().moves.map(({ step, reason, count }) => [{ step, reason }, count]));
}

function addPasses(registry: Registry, passes: PassStats): void {
  const add = (name: string, help: string, read: () => number): void =>
    counter(registry, { name: `placement_${name}`, help }, () => [[{}, read()]]);
  add('passes_total', 'Passes of the planner run here', () => passes.passes);
  add('failed_passes_total', 'Passes that ended in an error', () => passes.failedPasses);
  const last = { name: 'placement_last_pass_seconds', help: 'How long the last pass took' };
  gauge(registry, last, () => passes.lastPassMs / 1000);
  const steps = {
    name: 'placement_steps_total',
    help: 'Steps written by this node while it led',
    labelNames: ['step', 'reason'],
  };
  counter(registry, steps, () =>
    Array.from(passes.accepted, ([key, count]) => {
      const [step = '', reason = ''] = key.split('/');
      return [{ step, reason }, count];
    }),
  );
  const refused = {
    name: 'placement_refused_total',
    help: 'Steps refused as they were applied',
    labelNames: ['code'],
  };
  counter(registry, refused, () => Array.from(passes.refused, ([code, count]) => [{ code }, count]));
}
