import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  COMMAND_VERSION,
  encodeCommand,
  MAX_PLACEMENT_ENTRY_BYTES,
  type PlacementRow,
} from '../../../src/command/index.ts';
import { ROWS_PER_ENTRY, RowBatcher, type PlacementCommand } from '../../../src/control/placement-rows.ts';

const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 128 });
const time = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const row: fc.Arbitrary<PlacementRow> = fc.record({
  step: fc.constantFrom('place', 'stage'),
  shard: fc.string({ maxLength: 400 }),
  role: fc.constantFrom('leader', 'follower'),
  from: fc.option(id),
  to: fc.option(id),
  drops: fc.option(id),
  reason: fc.constantFrom('new', 'balance'),
  copies: fc.boolean(),
  expect: time,
  requires: fc.array(fc.record({ broker: id, incarnation: time, allowDraining: fc.boolean() }), {
    maxLength: 4,
  }),
  opensEpoch: fc.boolean(),
  next: fc.record({
    leader: id,
    replicas: fc.array(id, { maxLength: 16 }),
    inSync: fc.array(id, { maxLength: 16 }),
    state: fc.constantFrom('assigning', 'active'),
    failedMoves: time,
    move: fc.constant(null),
  }),
  resourceRevision: time,
  rule: id,
  detail: fc.string({ unit: 'grapheme', maxLength: 1_024 }),
});

describe('gathering rows into entries', () => {
  it('keeps order and every row, and no entry is over its limits', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 260, size: 'max' }), (rows) => {
        const batcher = new RowBatcher();
        const entries: PlacementCommand[] = [];
        for (const one of rows) {
          const full = batcher.add(one);
          if (full !== null) entries.push(full);
        }
        const rest = batcher.flush();
        if (rest !== null) entries.push(rest);
        expect(entries.flatMap((entry) => entry.rows)).toEqual(rows);
        for (const command of entries) {
          expect(command.rows.length).toBeLessThanOrEqual(ROWS_PER_ENTRY);
          const entry = { version: COMMAND_VERSION, timeMs: 0, request: null, inTerm: 1, command };
          expect(encodeCommand(entry).length).toBeLessThanOrEqual(MAX_PLACEMENT_ENTRY_BYTES);
        }
        expect(batcher.flush()).toBeNull();
      }),
      { numRuns: 30 },
    );
  });
});
