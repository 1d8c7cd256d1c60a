import type { Policy } from '../../placement/index.ts';
import {
  ASSIGNMENT_STATES,
  failuresField,
  Fields,
  MOVE_ROLES,
  readMove,
  REASONS,
  STEPS,
  ZONE_POLICIES,
} from '../state/index.ts';
import type { PlacementRow } from './types.ts';

type Patch = { -readonly [K in keyof Policy]?: Policy[K] };

export function readPolicyPatch(f: Fields): Partial<Policy> {
  const patch: Patch = {};
  const numbers = [
    'maxConcurrentMoves',
    'maxConcurrentHandovers',
    'restoreAfterMs',
    'moveTimeoutMs',
    'moveStallMs',
    'fenceTimeoutMs',
    'fenceMaxLagRecords',
    'settleMs',
    'passIntervalMs',
  ] as const;
  for (const key of numbers) if (f.has(key)) patch[key] = f.integer(key);
  if (f.has('maxMovesPerBroker')) {
    patch.maxMovesPerBroker = f.nullable('maxMovesPerBroker', (key) => f.integer(key));
  }
  if (f.has('paused')) patch.paused = f.boolean('paused');
  if (f.has('zonePolicy')) patch.zonePolicy = f.oneOf('zonePolicy', ZONE_POLICIES);
  f.end();
  return patch;
}

export function readPlacementRow(value: unknown, path: string): PlacementRow {
  const f = new Fields(value, path);
  const row: PlacementRow = {
    step: f.oneOf('step', STEPS),
    shard: f.string('shard'),
    role: f.oneOf('role', MOVE_ROLES),
    from: f.nullable('from', (key) => f.string(key)),
    to: f.nullable('to', (key) => f.string(key)),
    drops: f.nullable('drops', (key) => f.string(key)),
    reason: f.oneOf('reason', REASONS),
    copies: f.boolean('copies'),
    expect: f.integer('expect'),
    requires: f.list('requires', readRequirement),
    opensEpoch: f.boolean('opensEpoch'),
    next: readDecided(f.fields('next')),
    resourceRevision: f.integer('resourceRevision'),
    rule: f.string('rule'),
    detail: f.string('detail'),
  };
  f.end();
  return row;
}

function readRequirement(value: unknown, path: string): PlacementRow['requires'][number] {
  const f = new Fields(value, path);
  const need = {
    broker: f.string('broker'),
    incarnation: f.integer('incarnation'),
    allowDraining: f.boolean('allowDraining'),
  };
  f.end();
  return need;
}

function readDecided(f: Fields): PlacementRow['next'] {
  const decided = {
    leader: f.string('leader'),
    replicas: f.strings('replicas'),
    inSync: f.strings('inSync'),
    state: f.oneOf('state', ASSIGNMENT_STATES),
    failedMoves: f.integer('failedMoves'),
    ...failuresField(f),
    move: f.nullable('move', (key) => readMove(f.fields(key))),
  };
  f.end();
  return decided;
}
