import { Counter, Registry } from 'prom-client';
import type { Clock } from '../raft/index.ts';
import { MAX_STATE_BYTES } from './command/index.ts';
import type { LastPlan, PassStats } from './control/index.ts';
import type { ControlPlane } from './control-plane.ts';
import { gauge, type Described, type Labels } from './metrics-gauge.ts';
import { placementFigures, type PlacementFigures } from './metrics-placement.ts';
import type { ProcessMetrics } from './metrics-process.ts';

const MS_PER_SECOND = 1_000;
const LIFECYCLES = ['live', 'draining', 'down', 'left'];

/** One node's metrics, in a registry of its own. What the state says is computed at a scrape, once a revision. */
export interface Metrics {
  readonly contentType: string;
  exposition(): Promise<string>;
}

/** What the metrics read of this node's `Control`. */
export interface ControlFigures {
  /** Counted since the process began. */
  readonly stats: PassStats;
  /** `null` where this node does not lead, or has not planned yet. */
  readonly lastPlan: LastPlan | null;
}

export function createMetrics(parts: {
  readonly plane: ControlPlane;
  readonly control: ControlFigures;
  readonly clock: Clock;
  /** `null` where the node has not a process of its own. */
  readonly ofProcess: ProcessMetrics | null;
}): Metrics {
  const { plane, control, clock, ofProcess } = parts;
  const registry = new Registry();
  registry.setDefaultLabels({ node: plane.nodeId });
  addRaft(registry, plane);
  addState(registry, plane);
  addPlacement(registry, plane, clock);
  addPasses(registry, control.stats);
  addLastPlan(registry, control);
  return {
    contentType: registry.contentType,
    exposition: async () => {
      const parts = [await registry.metrics(), (await ofProcess?.exposition()) ?? ''];
      return parts.join('');
    },
  };
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

function addState(registry: Registry, { state }: ControlPlane): void {
  const add = (name: string, help: string, read: () => number): void =>
    gauge(registry, { name: `state_${name}`, help }, read);
  add('revision', 'Index of the last entry that changed the state', () => state.revision);
  add('bytes', 'What a snapshot of the state takes', () => state.bytes);
  add('max_bytes', 'What it may take before growth is refused', () => MAX_STATE_BYTES);
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

function addPlacement(registry: Registry, plane: ControlPlane, clock: Clock): void {
  const read = (): Promise<PlacementFigures> => placementFigures(plane.state, clock);
  const add = (name: string, help: string, pick: (figures: PlacementFigures) => number): void =>
    gauge(registry, { name: `placement_${name}`, help }, async () => pick(await read()));
  add('max_leader_spread_per_resource', 'Most leaders less fewest, worst resource', (f) => f.maxLeaderSpread);
  add(
    'resources_out_of_level',
    'Resources of which some broker leads more or less than its share',
    (f) => f.outOfLevel,
  );
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
  gauge(registry, moves, async () =>
    (await read()).moves.map(({ step, reason, count }) => [{ step, reason }, count] as const),
  );
}

function addPasses(registry: Registry, passes: PassStats): void {
  const add = (name: string, help: string, read: () => number): void =>
    counter(registry, { name: `placement_${name}`, help }, () => [[{}, read()]]);
  add('passes_total', 'Passes of the planner run here', () => passes.passes);
  add('failed_passes_total', 'Passes that ended in an error', () => passes.failedPasses);
  const last = { name: 'placement_last_pass_seconds', help: 'How long the last pass took' };
  gauge(registry, last, () => passes.lastPassMs / MS_PER_SECOND);
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

/** Of the last plan: on the leader only, since no other node plans. */
function addLastPlan(registry: Registry, control: ControlFigures): void {
  const lists = [
    ['waiting', 'Shards that wait for something, by reason'],
    ['unplaceable', 'Shards that nothing can serve now, by reason'],
    ['unspread', 'Shards in fewer zones than wanted, by reason'],
  ] as const;
  for (const [list, help] of lists) {
    gauge(registry, { name: `placement_${list}`, help, labelNames: ['reason'] }, () => {
      const plan = control.lastPlan?.plan;
      if (plan === undefined) return [];
      return Array.from(plan[list], ([reason, { count }]) => [{ reason }, count] as const);
    });
  }
  const left = {
    name: 'placement_minimum_leader_moves',
    help: 'Proven fewest leadership moves left; NaN where a cap, a copy out of sync or what has moved already stands in the way, and where nobody plans',
  };
  gauge(registry, left, () => control.lastPlan?.plan.minimumLeaderMoves ?? Number.NaN);
}
