import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { AdminNode } from '../../support/admin-node.ts';
import { runCli } from '../../support/cli.ts';
import { assignmentRow, brokerRow, importOf } from '../apply/harness.ts';

let node: AdminNode;
beforeEach(async () => {
  node = await AdminNode.start();
});
afterEach(() => node.stop());

const small = {
  version: 1,
  brokers: [{ id: 'b1' }, { id: 'b2', weight: 3 }],
  resources: [{ name: 'orders', shards: 2 }],
  assignments: [{ shard: 'stream:orders/0', leader: 'b1', replicas: ['b1', 'b2'] }],
  policy: { restoreAfterMs: 7 },
};

const cli = (args: string[], files: Record<string, string> = {}) =>
  runCli([...args, '--endpoints', node.address], { files });

describe('import and export', () => {
  it('a cluster file comes out as it went in, every default filled in', async () => {
    const imported = await cli(['import', '-f', 'c.json'], { 'c.json': JSON.stringify(small) });
    expect(imported).toEqual({
      code: 0,
      out: '',
      note: 'imported 2 brokers, 1 resources, 1 assignments\n',
    });
    const { out } = await cli(['export']);
    const file = JSON.parse(out) as Record<string, unknown>;
    expect(file).toMatchObject({
      version: 1,
      brokers: [
        { id: 'b1', lifecycle: 'live' },
        { id: 'b2', weight: 3 },
      ],
      resources: [{ kind: 'stream', name: 'orders', replicationFactor: 1, durable: true }],
      assignments: [{ shard: 'stream:orders/0', inSync: ['b1', 'b2'], state: 'active', move: null }],
      policy: { restoreAfterMs: 7, maxConcurrentMoves: 1 },
    });
    expect(Object.keys(file)).toEqual(['version', 'brokers', 'resources', 'assignments', 'policy']);
    expect(parse((await cli(['export', '-o', 'yaml'])).out)).toEqual(file);
    const again = await cli(['import', '-f', '-', '--overwrite'], { '-': out });
    expect(again.code).toBe(0);
  });

  it('an import that was begun is listed, and can be given up', async () => {
    const [part] = importOf({ brokers: [brokerRow('b1'), brokerRow('b2')] }, { importId: '44' });
    node.plane.harness.ok(part);
    const listed = await cli(['import', '--list']);
    expect(listed.out).toBe('IMPORT  PARTS  ROWS  EXPIRES IN\n44          1     2  60 min\n');
    expect(JSON.parse((await cli(['import', '--list', '-o', 'json'])).out)).toMatchObject({
      items: [{ importId: '44', parts: 1, rows: 2, expiresInMs: 3_600_000 }],
    });
    expect(await cli(['import', '--abort', '44'])).toMatchObject({ code: 0, note: 'aborted import 44\n' });
    expect(node.plane.state.stagedImports).toEqual([]);
    expect((await cli(['import', '--abort', '44'])).code).toBe(3);
    expect((await cli(['import'])).code).toBe(2);
    expect((await cli(['import', '--list', '--abort', '44'])).code).toBe(2);
  });

  it('an import that is refused leaves nothing staged', async () => {
    node.plane.harness.register('b9');
    expect((await cli(['import', '-f', 'c.json'], { 'c.json': JSON.stringify(small) })).code).toBe(4);
    expect(node.plane.state.stagedImports).toEqual([]);
  });

  it('a used cluster is replaced only where it is asked for', async () => {
    node.plane.harness.register('b9');
    const files = { 'c.json': JSON.stringify(small) };
    const refused = await cli(['import', '-f', 'c.json'], files);
    expect(refused.code).toBe(4);
    expect(refused.note).toContain('overwrite');
    expect(node.plane.state.brokers.has('b9')).toBe(true);
    expect((await cli(['import', '-f', 'c.json', '--overwrite'], files)).code).toBe(0);
    expect([...node.plane.state.brokers.keys()]).toEqual(['b1', 'b2']);
  });

  it('a large file goes in parts of at most 256 KiB and becomes visible at once', async () => {
    const count = 4_000;
    const assignments = Array.from({ length: count }, (_, i) =>
      assignmentRow(`stream:big/${i}`, ['b1', 'b2']),
    );
    const brokers = ['b1', 'b2'].map((id) => brokerRow(id));
    const resources = [{ name: 'big', shards: count, replicationFactor: 2 }];
    const file = JSON.stringify({ version: 1, brokers, resources, assignments });
    const revisions = new Set<number>();
    const { state } = node.plane;
    node.plane.onPropose = async () => void revisions.add(state.assignments.size);
    expect((await cli(['import', '-f', 'c.json'], { 'c.json': file })).code).toBe(0);
    expect([...revisions]).toEqual([0]);
    expect(state.assignments.size).toBe(count);
    const parts = node.plane.proposed.flatMap(({ command }) =>
      command.type === 'importPart' ? [command] : [],
    );
    expect(parts.length).toBeGreaterThan(1);
    for (const { brokers: b, resources: r, assignments: a } of parts) {
      expect(Buffer.byteLength(JSON.stringify([b, r, a]))).toBeLessThanOrEqual(256 * 1024);
    }
    const list = await cli(['shard', 'list', '-o', 'json']);
    expect((JSON.parse(list.out) as { items: unknown[] }).items).toHaveLength(count);
  });

  it.each([
    ['no JSON', '{', 'not JSON'],
    ['an unknown key', JSON.stringify({ ...small, broker: [] }), 'broker'],
    [
      'a broker twice',
      JSON.stringify({ ...small, brokers: [{ id: 'b1' }, { id: 'b1' }, { id: 'b2' }] }),
      'b1',
    ],
    [
      'a leader without a copy',
      JSON.stringify({ ...small, assignments: [{ shard: 'orders/0', leader: 'b2', replicas: ['b1'] }] }),
      'orders/0',
    ],
    [
      'a shard past the count',
      JSON.stringify({
        ...small,
        assignments: [{ shard: 'stream:orders/2', leader: 'b1', replicas: ['b1'] }],
      }),
      'orders/2',
    ],
    [
      'no shards',
      JSON.stringify({ ...small, resources: [{ name: 'orders', shards: 0 }], assignments: [] }),
      'shards',
    ],
    [
      'a name with a space',
      JSON.stringify({ ...small, resources: [{ name: 'a b', shards: 1 }], assignments: [] }),
      'a b',
    ],
    [
      'a replication factor above the limit',
      JSON.stringify({ ...small, resources: [{ name: 'orders', shards: 2, replicationFactor: 99 }] }),
      '99',
    ],
  ])('%s is refused before anything is sent', async (_what, text, word) => {
    const { code, note } = await cli(['import', '-f', 'c.json'], { 'c.json': text });
    expect(code).toBe(3);
    expect(note).toContain(word);
    expect(node.plane.proposed).toEqual([]);
  });
});
