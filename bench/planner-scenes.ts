import { DEFAULT_POLICY, type Assignment, type Resource, type Snapshot } from '../placement/index.ts';
import {
  brokersOf,
  NOW_MS,
  resourcesOf,
  skewed,
  withBroker,
  withDead,
  type Layout,
} from './planner-layouts.ts';

/** Rows that a small change writes anew. */
const CHANGED_ROWS = 100;

/** A pass that is measured, from the state before it. */
export interface Scene {
  readonly name: string;
  readonly snapshot: Snapshot;
  /** The state before is a settled one but for these rows: whoever keeps something of it may use that. */
  readonly since?: { readonly settled: Snapshot; readonly rows: readonly Assignment[] };
}

export function emptyCluster(layout: Layout): Snapshot {
  return {
    nowMs: NOW_MS,
    brokers: brokersOf(layout.brokers),
    resources: resourcesOf(layout),
    assignments: [],
    policy: DEFAULT_POLICY,
    firstRegisteredAtMs: 0,
    phase: 0,
  };
}

/** Everything measured after the first placement, on the rows that it left. */
export function* scenesOf(layout: Layout, base: Snapshot, rows: readonly Assignment[]): Generator<Scene> {
  const settled = { ...base, assignments: rows };
  yield { name: 'settled', snapshot: settled };
  const changed = rows.slice(0, CHANGED_ROWS).map((row) => ({ ...row, generation: row.generation + 1 }));
  yield {
    name: `settled, ${CHANGED_ROWS} rows changed`,
    snapshot: { ...settled, assignments: [...changed, ...rows.slice(CHANGED_ROWS)] },
    since: { settled, rows: changed },
  };
  yield* troubles(layout, settled, '');
  const uneven = { ...base, assignments: skewed(rows) };
  yield { name: '5 % skewed, as it is', snapshot: uneven };
  yield* troubles(layout, uneven, '5 % skewed, ');
}

function* troubles(layout: Layout, from: Snapshot, prefix: string): Generator<Scene> {
  yield { name: `${prefix}one broker joins`, snapshot: { ...from, brokers: brokersOf(layout.brokers + 1) } };
  yield { name: `${prefix}one drains`, snapshot: withBroker(from, 'b5', { drain: true }) };
  yield { name: `${prefix}one dies`, snapshot: withDead(from, 'b5') };
  const policy = { ...from.policy, zonePolicy: 'zone' as const };
  yield { name: `${prefix}zone policy changed`, snapshot: { ...from, policy } };
}

export function keyOf({ kind, name }: Resource): string {
  return `${kind}:${name}`;
}
