import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, type ClusterFile } from '../../../placement/index.ts';
import { exportCluster, parseClusterFile } from '../../../src/cluster-file/index.ts';
import { MAX_COUNTER, type CommandResult } from '../../../src/command/index.ts';
import { decodeSnapshot } from '../../../src/state/index.ts';
import { drained } from '../../support/drained.ts';
import { assignmentRow, brokerRow, Harness, importOf, resource } from './harness.ts';
import { prepare, runScript, scriptArbitrary } from './script.ts';

function exported(h: Harness): ClusterFile {
  return parseClusterFile(JSON.stringify(drained(exportCluster(h.state, h.state.timeMs))));
}

/** What is asked of a cluster that takes the file, part and commit. */
function imported(h: Harness, file: ClusterFile, importId: string): CommandResult[] {
  const { brokers, resources, assignments, policy } = file;
  const rows = { brokers: [...brokers], resources: [...resources], assignments: [...assignments] };
  return importOf(rows, { importId, policy, overwrite: true }).map((command) => h.do(command));
}

function expectReadable(h: Harness): void {
  expect(decodeSnapshot(h.machine.snapshot()).stateHash).toBe(h.state.stateHash);
}

const fileOf = (counter: number) => ({
  brokers: [brokerRow('b1', { incarnation: counter }), brokerRow('b2', { incarnation: counter })],
  resources: [resource('s', { shards: 2 })],
  assignments: [
    assignmentRow('stream:s/0', ['b1', 'b2'], { generation: counter, epoch: counter }),
    assignmentRow('stream:s/1', ['b2', 'b1'], { generation: 1, epoch: 1 }),
  ],
});

describe('every state that commands can reach', () => {
  it('is read back from its snapshot, and from its export into an empty cluster and over itself', () => {
    fc.assert(
      fc.property(scriptArbitrary, (script) => {
        const h = new Harness();
        prepare(h);
        runScript(h, script);
        expectReadable(h);
        const file = exported(h);
        for (const target of [new Harness(), h]) {
          for (const result of imported(target, file, '999999')) expect(result).toMatchObject({ ok: true });
          expectReadable(target);
          expect(exported(target).assignments).toHaveLength(file.assignments.length);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('counts one generation and one incarnation more for a round of export and import over itself, however many rounds', () => {
    const h = new Harness();
    for (const command of importOf(fileOf(7))) h.ok(command);
    for (let round = 1; round <= 60; round += 1) {
      expect(imported(h, exported(h), String(round)).every(({ ok }) => ok)).toBe(true);
      expect(h.state.maxGeneration).toBe(7 + round);
      expect(h.broker('b1').incarnation).toBe(7 + round);
    }
    expectReadable(h);
    expect(h.register('b1').incarnation).toBe(68);
  });

  it('leaves a cluster that can count on after files whose counters are at their limit', () => {
    const h = new Harness();
    for (let i = 0; i < 4; i += 1) {
      const [part, commit] = importOf(fileOf(MAX_COUNTER), { importId: String(i), overwrite: true });
      h.ok(part);
      h.ok(commit);
      h.register('b1');
      h.register('b2', { storeId: 'another' });
    }
    expect(h.state.maxGeneration).toBeLessThan(100);
    expectReadable(h);
    expect(h.register('b1').incarnation).toBeLessThan(100);
  });
});

describe('a counter at its limit', () => {
  it('of an import is refused with its first part', () => {
    const h = new Harness();
    const rows = fileOf(MAX_COUNTER + 1);
    for (const wrong of [{ brokers: rows.brokers }, { assignments: rows.assignments }]) {
      expect(h.refused(importOf(wrong)[0])).toMatchObject({ code: 'limit_exceeded' });
    }
    expect(
      h.refused(importOf({ brokers: [brokerRow('b1', { downSinceMs: 2 ** 53 - 1 })] })[0]),
    ).toMatchObject({
      code: 'limit_exceeded',
      message: expect.stringContaining('downSinceMs'),
    });
  });

  it('of a decided row is refused with its entry', () => {
    const h = new Harness();
    h.register('b1');
    h.create('s', { replicationFactor: 1 });
    const next = {
      leader: 'b1',
      replicas: ['b1'],
      inSync: ['b1'],
      state: 'assigning' as const,
      failedMoves: MAX_COUNTER + 1,
      move: null,
    };
    expect(h.refused({ type: 'placement', rows: [h.row({ next })] }).message).toContain('failedMoves');
  });

  it('keeps the policy of a file with the highest numbers', () => {
    const h = new Harness();
    for (const command of importOf(fileOf(MAX_COUNTER), { policy: DEFAULT_POLICY })) h.ok(command);
    expect(h.assignment()).toMatchObject({ generation: 1, epoch: 1 });
  });
});
