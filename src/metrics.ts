import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ControlPlane } from './control-plane.ts';
import { countLevels, countReplication, sumReplication } from './wire/index.ts';

const LOOP_RESOLUTION_MS = 10;
const NS_PER_SECOND = 1e9;
const PASS_BUCKETS_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 1, 5, 20];

/** One node's metrics, in a registry of its own. What the state says is computed at a scrape, once a revision. */
export interface Metrics {
  readonly contentType: string;
  exposition(): Promise<string>;
  /** `control` tells of each pass it ran, seconds, and of each step it wrote. */
  observePass(durationSeconds: number): void;
  countStep(step: string, reason: string): void;
  stop(): void;
}

export function createMetrics(plane: ControlPlane): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ node: plane.nodeId });
  collectDefaultMetrics({ register: registry });
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  addRaft(registry, plane);
  addLoop(registry, loop);
  addState(registry, plane);
  addPlacement(registry, plane);
  const registers = [registry];
  const passes = new Histogram({
    name: 'evenkeel_placement_pass_seconds',
    help: 'How long a pass of the planner took',
    buckets: PASS_BUCKETS_SECONDS,
    registers,
  });
  const steps = new Counter({
    name: 'evenkeel_placement_steps_total',
    help: 'Steps of placement proposed by this node while it led',
    labelNames: ['step', 'reason'] as const,
    registers,
  });
  return {
    contentType: registry.contentType,
    exposition: () => registry.metrics(),
    observePass: (durationSeconds) => passes.observe(durationSeconds),
    countStep: (step, reason) => steps.inc({ step, reason }),
    stop: () => loop.disable(),
  };
}

function addGauge(registry: Registry, name: string, help: string, read: () => number): void {
  new Gauge({
    name: `evenkeel_${name}`,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}

function addRaft(registry: Registry, plane: ControlPlane): void {
  const gauge = (name: string, help: string, read: () => number): void =>
    addGauge(registry, `raft_${name}`, help, read);
  gauge('term', 'Current term', () => plane.raftStatus().term);
  gauge('is_leader', '1 while this node leads', () => Number(plane.raftStatus().role === 'leader'));
  gauge('has_leader', '1 while a leader is known', () => Number(plane.leadership().leaderId !== null));
  gauge('commit_index', 'Highest committed index known', () => plane.raftStatus().commitIndex);
  gauge('applied_index', 'Highest applied index', () => plane.raftStatus().appliedIndex);
  gauge('last_index', 'Last index of the log', () => plane.raftStatus().lastIndex);
  gauge('ready', '1 while caught up and a leader is known', () => Number(plane.raftStatus().ready));
}

function addLoop(registry: Registry, loop: IntervalHistogram): void {
  new Gauge({
    name: 'evenkeel_event_loop_delay_seconds',
    help: 'Delay of the event loop since the last scrape',
    labelNames: ['quantile'] as const,
    registers: [registry],
    collect() {
      for (const percentile of [50, 99, 99.9]) {
        this.set({ quantile: String(percentile / 100) }, loop.percentile(percentile) / NS_PER_SECOND);
      }
      this.set({ quantile: '1' }, loop.max / NS_PER_SECOND);
      loop.reset();
    },
  });
}

function addState(registry: Registry, plane: ControlPlane): void {
  const { state } = plane;
  addGauge(
    registry,
    'state_revision',
    'Index of the last entry that changed the state',
    () => state.revision,
  );
  addGauge(registry, 'state_resources', 'Streams and caches', () => state.resources.size);
  addGauge(registry, 'state_assignments', 'Shards placed', () => state.assignments.size);
  new Gauge({
    name: 'evenkeel_state_brokers',
    help: 'Brokers by lifecycle',
    labelNames: ['lifecycle'] as const,
    registers: [registry],
    collect() {
      for (const lifecycle of ['live', 'draining', 'down', 'left']) this.set({ lifecycle }, 0);
      for (const { lifecycle } of state.brokers.values()) this.inc({ lifecycle });
    },
  });
}

function addPlacement(registry: Registry, plane: ControlPlane): void {
  const read = oncePerRevision(plane);
  const gauge = (name: string, help: string, pick: (figures: PlacementFigures) => number): void =>
    addGauge(registry, `placement_${name}`, help, () => pick(read()));
  gauge(
    'max_leader_spread_per_resource',
    'Most leaders less fewest, worst resource',
    (f) => f.maxLeaderSpread,
  );
  gauge('resources_out_of_level', 'Resources whose leaders are two or more apart', (f) => f.outOfLevel);
  gauge('leader_spread_total', 'Most leaders of all resources less fewest', (f) => f.leaderSpreadTotal);
  gauge('copy_spread_total', 'Most copies of all resources less fewest', (f) => f.copySpreadTotal);
  gauge('under_replicated', 'Shards with fewer in-sync copies than wanted', (f) => f.underReplicated);
  gauge('leaderless', 'Shards whose leader does not serve, or not placed', (f) => f.leaderless);
  gauge('paused', '1 while paused', () => Number(plane.state.policy.paused));
  new Gauge({
    name: 'evenkeel_placement_moves_in_flight',
    help: 'Moves in flight by step and reason',
    labelNames: ['step', 'reason'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const { step, reason, count } of read().moves) this.set({ step, reason }, count);
    },
  });
}

interface PlacementFigures {
  readonly maxLeaderSpread: number;
  readonly outOfLevel: number;
  readonly leaderSpreadTotal: number;
  readonly copySpreadTotal: number;
  readonly underReplicated: number;
  readonly leaderless: number;
  readonly moves: readonly { readonly step: string; readonly reason: string; readonly count: number }[];
}

/** The figures walk every assignment: they are taken again only when the state has changed. */
function oncePerRevision(plane: ControlPlane): () => PlacementFigures {
  let taken: { revision: number; figures: PlacementFigures } | null = null;
  return () => {
    const { revision } = plane.state;
    if (taken?.revision !== revision) taken = { revision, figures: takeFigures(plane) };
    return taken.figures;
  };
}

function takeFigures({ state }: ControlPlane): PlacementFigures {
  const levels = countLevels(state);
  const live = [...state.brokers.values()].filter(({ lifecycle }) => lifecycle === 'live');
  let outOfLevel = 0;
  for (const counts of Object.values(levels.leaders)) {
    const values = live.map(({ id }) => counts[id] ?? 0);
    if (values.length > 0 && Math.max(...values) - Math.min(...values) >= 2) outOfLevel += 1;
  }
  const { leaderless, short } = sumReplication(countReplication(state));
  const moves = new Map<string, { step: string; reason: string; count: number }>();
  for (const { move } of state.assignments.values()) {
    if (move === null) continue;
    const key = `${move.step} ${move.reason}`;
    const row = moves.get(key) ?? { step: move.step, reason: move.reason, count: 0 };
    row.count += 1;
    moves.set(key, row);
  }
  return {
    maxLeaderSpread: levels.maxLeaderSpreadPerResource,
    outOfLevel,
    leaderSpreadTotal: levels.leaderSpreadTotal,
    copySpreadTotal: levels.copySpreadTotal,
    underReplicated: short,
    leaderless,
    moves: [...moves.values()],
  };
}
