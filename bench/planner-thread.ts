/**
 * The same passes through the planner's thread, fed as `control` feeds it: what this one, which would run Raft, is
 * held up by. Every row is printed as a line of JSON for `planner.ts`.
 */
import { setImmediate as turn, setTimeout } from 'node:timers/promises';
import type { Assignment, Broker, Policy, Resource, Snapshot, Step } from '../placement/index.ts';
import type * as ClockModule from '../src/clock.ts';
import type * as Control from '../src/control/index.ts';
import type * as Logger from '../src/logger.ts';
import type * as StateModule from '../src/state/index.ts';
import type { Change, ShardMap, StateView } from '../src/state/index.ts';
import type { ChangeFeed } from '../src/watch/index.ts';
import { built } from './built.ts';
import { watchLoop } from './loop-stops.ts';
import { NO_REPORTS, NOW_MS, placedBy, type Layout } from './planner-layouts.ts';
import { emptyCluster, keyOf, scenesOf } from './planner-scenes.ts';
import type { StopRow } from './planner-table.ts';
import { peakMib, resetPeak } from './planner-timing.ts';

/** Rows of one entry at most, as the planner's decisions come in the log. */
const ROWS_PER_ENTRY = 500;
/** What the row before has left behind is swept up meanwhile, which an allocation would wait for. */
const SWEEPING_MS = 1_000;

export async function measureStops(layout: Layout): Promise<void> {
  const { WorkerPlanner } = await built<typeof Control>('src/control/index.js');
  const { createSystemClock } = await built<typeof ClockModule>('src/clock.js');
  const { ShardMap } = await built<typeof StateModule>('src/state/index.js');
  const { SILENT_LOGGER } = await built<typeof Logger>('src/logger.js');
  const base = emptyCluster(layout);
  const state = new FedState(base, new ShardMap());
  const planner = new WorkerPlanner(state.view, state.feed, {
    clock: createSystemClock(),
    log: SILENT_LOGGER,
  });
  /** The steps are read as `control` reads them; `write` is what becomes of a slice before the next is taken. */
  const measure = async (name: string, snapshot: Snapshot, write: (steps: readonly Step[]) => void) => {
    globalThis.gc?.();
    await setTimeout(SWEEPING_MS);
    resetPeak();
    const endOfWatch = watchLoop();
    await state.become(snapshot);
    const began = performance.now();
    const { slices } = await planner.plan(() => ({ nowMs: NOW_MS, reports: NO_REPORTS }));
    for await (const steps of slices) {
      write(steps);
      await turn();
    }
    const { longestMs, p99Ms } = endOfWatch();
    const row: StopRow = {
      kind: 'stop',
      name,
      roundTripMs: performance.now() - began,
      stopMs: longestMs,
      p99Ms,
      peakMib: peakMib(),
    };
    console.log(JSON.stringify(row));
  };
  planner.start();
  await measure('first placement', base, (steps) => state.write(placedBy({ steps })));
  const rows = state.rows;
  for (const { name, snapshot } of scenesOf(layout, base, rows)) await measure(name, snapshot, () => {});
  await planner.close();
}

/** As much of the replicated state as the planner is fed from, changed entry by entry. */
class FedState {
  readonly #brokers = new Map<string, Broker>();
  readonly #resources = new Map<string, Resource>();
  readonly #assignments: ShardMap<Assignment>;
  #policy: Policy;
  #revision = 0;
  #onChanges: Parameters<ChangeFeed['subscribe']>[1] = () => {};

  constructor({ brokers, resources, policy }: Snapshot, assignments: ShardMap<Assignment>) {
    this.#assignments = assignments;
    for (const row of brokers) this.#brokers.set(row.id, row);
    for (const row of resources) this.#resources.set(keyOf(row), row);
    this.#policy = policy;
  }

  /** What the planner's side reads of a state. */
  get view(): StateView {
    const policy = (): Policy => this.#policy;
    const part = {
      brokers: this.#brokers,
      resources: this.#resources,
      assignments: this.#assignments,
      firstRegisteredAtMs: 0,
      phase: 0,
      revision: 0,
      get policy() {
        return policy();
      },
    };
    return part as unknown as StateView;
  }

  get feed(): ChangeFeed {
    return {
      floor: 0,
      revision: 0,
      subscribe: (_, onChanges) => {
        this.#onChanges = onChanges;
        return () => {};
      },
    };
  }

  /** Makes the state that of a snapshot: one entry a turn, of what differs. */
  async become({ brokers, assignments, policy }: Snapshot): Promise<void> {
    this.#policy = policy;
    const kept = new Set(brokers.map((row) => row.id));
    for (const id of this.#brokers.keys()) {
      if (kept.has(id)) continue;
      this.#brokers.delete(id);
      this.#tell([{ kind: 'brokerRemoved', id }]);
    }
    for (const row of brokers) {
      if (same(this.#brokers.get(row.id), row)) continue;
      this.#brokers.set(row.id, row);
      this.#tell([{ kind: 'broker', broker: row } as Change]);
    }
    let changed: Assignment[] = [];
    for (const [i, row] of assignments.entries()) {
      if (this.#assignments.get(row.shard) !== row) changed.push(row);
      if (changed.length < ROWS_PER_ENTRY && i % (4 * ROWS_PER_ENTRY) > 0) continue;
      this.write(changed);
      changed = [];
      await turn();
    }
    this.write(changed);
  }

  get rows(): Assignment[] {
    return this.#assignments.list();
  }

  /** One entry's rows. */
  write(rows: readonly Assignment[]): void {
    for (const row of rows) this.#assignments.set(row.shard, row);
    this.#tell(
      rows.map((assignment) => ({ kind: 'assignment', assignment, previous: null }) as unknown as Change),
    );
  }

  #tell(changes: readonly Change[]): void {
    if (changes.length > 0) this.#onChanges({ revision: ++this.#revision, changes });
  }
}

function same(a: Broker | undefined, b: Broker): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
