import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { malformed, resourceKey, splitShard } from '../../../placement/index.ts';
import type { RowResult } from '../../../src/command/index.ts';
import type { AssignmentRow, StateView } from '../../../src/state/index.ts';
import { Harness } from './harness.ts';
import { prepare, runScript, scriptArbitrary } from './script.ts';

interface Before {
  readonly rows: ReadonlyMap<string, AssignmentRow>;
  readonly revision: number;
  readonly maxGeneration: number;
  readonly incarnations: ReadonlyMap<string, number>;
}

function remember(state: StateView): Before {
  return {
    rows: new Map(state.assignments.list().map((row) => [row.shard, row])),
    revision: state.revision,
    maxGeneration: state.maxGeneration,
    incarnations: new Map([...state.brokers].map(([id, row]) => [id, row.incarnation])),
  };
}

function checkRows(state: StateView): void {
  for (const row of state.assignments.list()) {
    const { shard } = row;
    expect(state.assignments.get(shard)).toBe(row);
    expect(malformed(row)).toBeNull();
    expect(row.epoch).toBeLessThanOrEqual(row.generation);
    expect(row.generation).toBeLessThanOrEqual(state.maxGeneration);
    expect(row.revision).toBeLessThanOrEqual(state.revision);
    expect(row.stagedIncarnation === null).toBe(row.move === null);
    if (row.drained) {
      expect(row.state).toBe('draining');
      expect(row.inSync).toContain(row.move?.to);
    }
    const { resource, number } = splitShard(shard);
    const owner = state.resources.get(resource);
    if (owner === undefined) throw new Error(`${shard} outlived its resource`);
    expect(resourceKey(owner)).toBe(resource);
    expect(number).toBeLessThan(owner.shards);
    for (const id of row.replicas) expect(state.brokers.has(id), `${shard} names ${id}, removed`).toBe(true);
  }
}

function checkChange(before: Before, state: StateView): void {
  expect(state.maxGeneration).toBeGreaterThanOrEqual(before.maxGeneration);
  for (const row of state.assignments.list()) {
    const old = before.rows.get(row.shard);
    if (old === row) continue;
    expect(row.revision).toBe(state.revision);
    if (old === undefined) {
      expect(row.generation).toBeGreaterThan(before.maxGeneration);
      continue;
    }
    const said = old.generation === row.generation && old.drained !== row.drained;
    if (said) continue;
    expect(row.generation).toBeGreaterThan(old.generation);
    expect(row.epoch === old.epoch || row.epoch > old.generation).toBe(true);
    if (row.leader !== old.leader) expect(row.epoch).toBe(row.generation);
  }
  for (const [id, incarnation] of before.incarnations) {
    const now = state.brokers.get(id)?.incarnation;
    if (now !== undefined) expect(now).toBeGreaterThanOrEqual(incarnation);
  }
}

function checkSlots(state: StateView, before: Before): void {
  const moves = (rows: readonly AssignmentRow[]) =>
    rows.filter((row) => row.move !== null && !row.move.copied).length;
  const now = moves(state.assignments.list());
  if (now > moves([...before.rows.values()])) {
    expect(now).toBeLessThanOrEqual(state.policy.maxConcurrentHandovers);
  }
}

function checkCaps(state: StateView, before: Before): void {
  const held = (rows: readonly AssignmentRow[], id: string) =>
    rows.filter((row) => row.replicas.includes(id)).length;
  for (const [id, { maxShards }] of state.brokers) {
    if (maxShards === null) continue;
    const now = held(state.assignments.list(), id);
    if (now > held([...before.rows.values()], id)) expect(now).toBeLessThanOrEqual(maxShards);
  }
}

describe('whatever is asked, in whatever order', () => {
  it('rows stay whole, counters never fall, caps and slots hold, refusals change nothing', () => {
    const seen = new Map<string, number>();
    const count = (key: string) => seen.set(key, (seen.get(key) ?? 0) + 1);
    fc.assert(
      fc.property(scriptArbitrary, (script) => {
        const h = new Harness();
        prepare(h);
        let before = remember(h.state);
        runScript(h, script, (command, result) => {
          const key = `${command?.type ?? 'noop'} ${result === null || result.ok ? 'ok' : 'refused'}`;
          count(key);
          if (command?.type === 'placement' && result?.ok === true) {
            const answers = result.value as readonly RowResult[];
            for (const [i, answer] of answers.entries()) count(`${command.rows[i]?.step} ${answer.result}`);
          }
          checkRows(h.state);
          if (command?.type !== 'importCommit') {
            checkChange(before, h.state);
            checkSlots(h.state, before);
            checkCaps(h.state, before);
          }
          if (result !== null && !result.ok) expect(h.state.revision).toBe(before.revision);
          before = remember(h.state);
        });
      }),
      { numRuns: 200 },
    );
    // The scripts reach what they are meant to reach.
    for (const key of [
      'place accepted',
      'stage accepted',
      'fence accepted',
      'join accepted',
      'place stale',
      'stage refused',
      'report ok',
      'confirm ok',
      'deleteResource ok',
      'importCommit ok',
      'removeBroker ok',
      'abandonShard ok',
      'removeBroker refused',
      'setLifecycle refused',
    ]) {
      expect(seen.get(key) ?? 0, key).toBeGreaterThan(0);
    }
  });
});
